//! Tokens from a file: `token,user,uid,"group1,group2"` on each line.

use authz::User;
use std::collections::HashMap;
use std::path::Path;

#[derive(Debug, Default)]
pub struct StaticTokens(HashMap<String, User>);

impl StaticTokens {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        StaticTokens::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = HashMap::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        {
            let fields = fields(line);
            let [token, name, uid, rest @ ..] = fields.as_slice() else {
                return Err(format!("line {}: expected token,user,uid[,\"groups\"]", at + 1));
            };
            if token.is_empty() || name.is_empty() {
                return Err(format!("line {}: token and user must not be empty", at + 1));
            }
            let groups = rest.first().map(|groups| groups.split(',').map(|group| group.trim().to_owned()));
            let groups = groups.into_iter().flatten().filter(|group| !group.is_empty()).collect();
            let user = User { name: name.clone(), uid: uid.clone(), groups, ..User::default() };
            tokens.insert(token.clone(), user);
        }
        Ok(StaticTokens(tokens))
    }

    pub(super) fn user(&self, token: &str) -> Option<&User> {
        self.0.get(token)
    }
}

/// The fields of a line; a field in quotes may contain commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().expect("there is always a field").push(c),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_user() {
        let tokens = StaticTokens::parse("# who\nsecret, ada, 7, \"dev,ops\"\nother,bob,8\n").unwrap();
        assert_eq!(tokens.user("secret").unwrap().groups, ["dev", "ops"]);
        assert_eq!(tokens.user("other").unwrap().name, "bob");
        assert!(tokens.user("nonsense").is_none());
        assert!(StaticTokens::parse("only,two").is_err() && StaticTokens::parse(",a,b").is_err());
    }
}
