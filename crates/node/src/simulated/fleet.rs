//! Which simulated nodes there are: groups of machines that are alike.
//!
//! A group is described in a line (`100,name=big,cpu=64,zones=3,label.disk=ssd,taint.gpu=yes:NoSchedule`) or in a file,
//! as a list of the same.

use object::Quantity;
use serde::Deserialize;
use std::collections::BTreeMap;

/// All simulated nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    groups: Vec<Group>,
}

/// Machines that are alike.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct Group {
    pub count: usize,
    /// What their names begin with; a dash and a number follow.
    pub name: String,
    /// What each has, by resource.
    pub capacity: BTreeMap<String, Quantity>,
    pub labels: BTreeMap<String, String>,
    /// Values and effects by key: `yes:NoSchedule`.
    pub taints: BTreeMap<String, String>,
    /// Over how many zones they are spread: `zone-0`, `zone-1` and so on.
    pub zones: usize,
}

/// What a machine has if nothing is said.
const CAPACITY: [(&str, &str); 4] = [("cpu", "32"), ("memory", "256Gi"), ("pods", "110"), ("ephemeral-storage", "1Ti")];
const NAME: &str = "node";

fn usual() -> impl Iterator<Item = (String, Quantity)> {
    CAPACITY.iter().map(|(name, amount)| ((*name).to_owned(), amount.parse().expect("it is a quantity")))
}

impl Default for Group {
    fn default() -> Self {
        Group {
            count: 1,
            name: NAME.to_owned(),
            capacity: usual().collect(),
            labels: BTreeMap::new(),
            taints: BTreeMap::new(),
            zones: 0,
        }
    }
}

impl Group {
    /// From a line: how many, then whatever is not as usual.
    pub fn parse(line: &str) -> Result<Self, String> {
        let mut parts = line.split(',');
        let count = parts.next().unwrap_or_default();
        let count = count.parse().ok().filter(|count| *count > 0).ok_or(format!("{count:?} is no number of nodes"))?;
        let mut group = Group { count, ..Group::default() };
        for part in parts {
            let (key, value) = part.split_once('=').ok_or(format!("{part:?}: expected KEY=VALUE"))?;
            match key.split_once('.') {
                _ if key == "name" => group.name = value.to_owned(),
                _ if key == "zones" => {
                    group.zones = value.parse().map_err(|_| format!("{value:?} is no number of zones"))?;
                }
                Some(("label", label)) => drop(group.labels.insert(label.to_owned(), value.to_owned())),
                Some(("taint", taint)) => drop(group.taints.insert(taint.to_owned(), value.to_owned())),
                _ => {
                    let amount = value.parse().map_err(|error| format!("{part:?}: {error}"))?;
                    group.capacity.insert(key.to_owned(), amount);
                }
            }
        }
        group.check().map(|()| group)
    }

    /// Whether nodes like these can be.
    fn check(&self) -> Result<(), String> {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        for (key, taint) in &self.taints {
            let effect = taint.rsplit_once(':').map(|(_, effect)| effect);
            if !effect.is_some_and(|effect| effects.contains(&effect)) {
                return Err(format!("taint {key}: expected VALUE:EFFECT, with one of {}", effects.join(", ")));
            }
        }
        if self.name.is_empty()
            || !self.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        {
            return Err(format!("{:?} is no name for nodes: lower-case letters, digits and dashes", self.name));
        }
        Ok(())
    }
}

/// One of the machines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// Among all machines: addresses are made from it.
    pub index: usize,
    /// Among those of its group.
    pub number: usize,
    pub group: &'a Group,
}

impl Member<'_> {
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.group.name, self.number)
    }
}

impl Fleet {
    /// So many machines, with nothing special about them.
    pub fn of(count: usize) -> Self {
        let group = (count > 0).then(|| Group { count, ..Group::default() });
        Fleet { groups: group.into_iter().collect() }
    }

    /// Machines of several groups, which must have different names. What a group does not say is as usual.
    pub fn new(mut groups: Vec<Group>) -> Result<Self, String> {
        for group in &mut groups {
            for (name, amount) in usual() {
                group.capacity.entry(name).or_insert(amount);
            }
        }
        for (at, group) in groups.iter().enumerate() {
            group.check()?;
            if groups[..at].iter().any(|other| other.name == group.name) {
                return Err(format!("two groups of nodes are called {:?}: give one another name", group.name));
            }
        }
        Ok(Fleet { groups })
    }

    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn members(&self) -> impl Iterator<Item = Member<'_>> {
        let numbered = self.groups.iter().flat_map(|group| (0..group.count).map(move |number| (number, group)));
        numbered.enumerate().map(|(index, (number, group))| Member { index, number, group })
    }

    /// The machine of a name, if it is one of these.
    pub(super) fn member(&self, name: &str) -> Option<Member<'_>> {
        let (prefix, number) = name.rsplit_once('-')?;
        let mut before = 0;
        for group in &self.groups {
            if group.name == prefix {
                let digits = number.parse().ok().filter(|digits: &usize| digits.to_string() == number);
                let number = digits.filter(|number| *number < group.count)?;
                return Some(Member { index: before + number, number, group });
            }
            before += group.count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_machines_are_like() {
        let group =
            Group::parse("10,name=big,cpu=64,example.com/gpu=8,zones=3,label.disk=ssd,taint.gpu=yes:NoSchedule");
        let group = group.unwrap();
        assert_eq!((group.count, group.name.as_str(), group.zones), (10, "big", 3));
        assert_eq!(group.capacity["cpu"], "64".parse().unwrap());
        assert_eq!(group.capacity["example.com/gpu"], "8".parse().unwrap());
        assert_eq!(group.capacity["memory"], "256Gi".parse().unwrap(), "what is not said is as usual");
        assert_eq!((group.labels["disk"].as_str(), group.taints["gpu"].as_str()), ("ssd", "yes:NoSchedule"));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_with_the_reason() {
        for (line, reason) in [
            ("many", "\"many\" is no number of nodes"),
            ("0", "\"0\" is no number of nodes"),
            ("1,cpu", "\"cpu\": expected KEY=VALUE"),
            ("1,name=Big", "\"Big\" is no name for nodes: lower-case letters, digits and dashes"),
            ("1,taint.a=b", "taint a: expected VALUE:EFFECT, with one of NoSchedule, PreferNoSchedule, NoExecute"),
        ] {
            assert_eq!(Group::parse(line).unwrap_err(), reason);
        }
        assert!(Group::parse("1,cpu=lots").unwrap_err().starts_with("\"cpu=lots\": "));
        let twice = Fleet::new(vec![Group::default(), Group::default()]);
        assert_eq!(twice.unwrap_err(), "two groups of nodes are called \"node\": give one another name");
    }

    #[test]
    fn what_a_file_does_not_say_of_a_machine_is_as_usual() {
        let read: Vec<Group> = object::from_value(&object::json!([{ "count": 2, "capacity": { "cpu": 64 } }])).unwrap();
        let fleet = Fleet::new(read).unwrap();
        let capacity = &fleet.member("node-1").unwrap().group.capacity;
        assert_eq!((capacity["cpu"], capacity["memory"]), ("64".parse().unwrap(), "256Gi".parse().unwrap()));
    }

    #[test]
    fn machines_are_known_by_their_names() {
        let groups = vec![Group::parse("2").unwrap(), Group::parse("3,name=big-one").unwrap()];
        let fleet = Fleet::new(groups).unwrap();
        let names: Vec<String> = fleet.members().map(|member| member.name()).collect();
        assert_eq!(names, ["node-0", "node-1", "big-one-0", "big-one-1", "big-one-2"]);
        for (index, name) in names.iter().enumerate() {
            assert_eq!(fleet.member(name).map(|member| member.index), Some(index));
        }
        for other in ["node-2", "node-01", "big-0", "other", "node-"] {
            assert!(fleet.member(other).is_none(), "{other}");
        }
    }
}
