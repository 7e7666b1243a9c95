//! The oracle of the simulation against loops that are broken on purpose: each of them is noticed, and nothing is found
//! where none is broken.

use object::{Edit, Value, View};
use std::time::Duration;
use testkit::simulation::How::{self, Forgets, Late, Reads, Writes};
use testkit::simulation::{Sabotage, found_wrong};

/// So many seeds are tried at most: not every edit of users makes a given fault show.
const SEEDS: u64 = 6;

struct Broken {
    account: &'static str,
    /// Which requests are not as they should be: a method, and a part of the path.
    requests: (&'static str, &'static str),
    how: How,
    /// What users make and change, and whether they delete it.
    users: (&'static [&'static str], bool),
    /// What is then found, in the words of the oracle.
    found: &'static str,
}

fn run(rows: &[Broken]) {
    let mut unnoticed = Vec::new();
    for Broken { account, requests: (method, place), how, users: (names, deletes), found } in rows {
        let broken = Sabotage { account, method, place, how: *how };
        let found_with = |seed| found_wrong(seed, names, *deletes, Some(broken)).expect("it runs");
        if !(0..SEEDS).any(|seed| found_with(seed).contains(found)) {
            unnoticed.push(format!("{broken:?}: {:?}", found_with(0)));
        }
    }
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
}

/// One more than it should be.
fn one_more(object: &mut Value, part: &str, field: &str) {
    let part = object.object_or_new(part);
    part.set(field, part.int(field).unwrap_or(0) + 1);
}

/// Takes the owners from an object, or from all in a list.
fn disown(object: &mut Value) {
    object.object_or_new("metadata").remove("ownerReferences");
    for item in object.each("items") {
        item.object_or_new("metadata").remove("ownerReferences");
    }
}

#[test]
fn nothing_is_found_where_no_loop_is_broken() {
    let all = [
        "replicaset",
        "replicationcontroller",
        "service",
        "budget",
        "deployment",
        "autoscaler",
        "daemonset",
        "quota",
        "statefulset",
        "volume",
        "claim",
        "team",
        "job",
        "cronjob",
        "outside",
    ];
    for seed in 0..SEEDS {
        assert_eq!(found_wrong(seed, &all, seed % 2 == 0, None).expect("it runs"), "", "seed {seed}");
    }
}

#[test]
fn workloads_whose_loops_forget_something_are_found() {
    run(&[
        Broken {
            account: "replicaset-controller",
            requests: ("POST", "/pods"),
            how: Forgets,
            users: (&["replicaset"], false),
            found: "the number of its pods",
        },
        Broken {
            account: "replication-controller",
            requests: ("PUT", "/status"),
            how: Forgets,
            users: (&["replicationcontroller"], false),
            found: "what it reports",
        },
        Broken {
            account: "deployment-controller",
            requests: ("PUT", "/replicasets/"),
            how: Forgets,
            users: (&["deployment"], false),
            found: "the replicas of its",
        },
        Broken {
            account: "statefulset-controller",
            requests: ("DELETE", "/pods/"),
            how: Forgets,
            users: (&["statefulset"], false),
            found: "its pods should be",
        },
        Broken {
            account: "daemon-set-controller",
            requests: ("DELETE", "/pods/"),
            how: Forgets,
            users: (&["daemonset"], false),
            found: "has an old pod",
        },
        Broken {
            account: "kube-scheduler",
            requests: ("POST", "/binding"),
            how: Forgets,
            users: (&["replicaset"], false),
            found: "does not run",
        },
        Broken {
            account: "job-controller",
            requests: ("PUT", "/status"),
            how: Forgets,
            users: (&["job"], false),
            found: "has not ended",
        },
        Broken {
            account: "job-controller",
            requests: ("POST", "/pods"),
            how: Forgets,
            users: (&["job"], false),
            found: "has not ended",
        },
        Broken {
            account: "cronjob-controller",
            requests: ("DELETE", "/jobs/"),
            how: Forgets,
            users: (&["cronjob"], false),
            found: "jobs of which",
        },
        Broken {
            account: "generic-garbage-collector",
            requests: ("DELETE", "/pods/"),
            how: Forgets,
            users: (&["replicaset"], true),
            found: "its owner",
        },
        // It takes pods that it is to let go of for let go.
        Broken {
            account: "generic-garbage-collector",
            requests: ("GET", "/pods"),
            how: Reads(disown),
            users: (&["replicaset"], true),
            found: "was collected and should have outlived",
        },
        Broken {
            account: "namespace-controller",
            requests: ("PUT", "/finalize"),
            how: Forgets,
            users: (&["team"], true),
            found: "its phase should be \"Active\"",
        },
    ]);
}

#[test]
fn what_serves_and_limits_workloads_is_found_if_its_loops_forget_something() {
    run(&[
        Broken {
            account: "endpointslice-controller",
            requests: ("PUT", "/endpointslices/"),
            how: Forgets,
            users: (
                &["service", "replicaset", "deployment", "statefulset", "daemonset", "replicationcontroller"],
                false,
            ),
            found: "its slices",
        },
        Broken {
            account: "endpoint-controller",
            requests: ("PUT", "/endpoints/"),
            how: Forgets,
            users: (
                &["service", "replicaset", "deployment", "statefulset", "daemonset", "replicationcontroller"],
                false,
            ),
            found: "its endpoints",
        },
        Broken {
            account: "endpointslicemirroring-controller",
            requests: ("PUT", "/endpointslices/"),
            how: Forgets,
            users: (&["outside"], false),
            found: "its mirrored slices",
        },
        Broken {
            account: "service-controller",
            requests: ("PUT", "/status"),
            how: Forgets,
            users: (&["service"], false),
            found: "whether it has a load balancer",
        },
        Broken {
            account: "disruption-controller",
            requests: ("PUT", "/status"),
            how: Forgets,
            users: (&["budget", "replicaset", "deployment", "statefulset", "replicationcontroller"], false),
            found: "expected, healthy, desired and allowed",
        },
        Broken {
            account: "horizontal-pod-autoscaler",
            requests: ("PUT", "/scale"),
            how: Forgets,
            users: (&["autoscaler", "deployment", "statefulset"], false),
            found: "the replicas should be",
        },
        Broken {
            account: "resourcequota-controller",
            requests: ("PUT", "/status"),
            how: Forgets,
            users: (&["quota", "replicaset"], false),
            found: "what is used",
        },
        Broken {
            account: "service-account-controller",
            requests: ("POST", "/serviceaccounts"),
            how: Forgets,
            users: (&["team"], false),
            found: "has no account",
        },
        Broken {
            account: "root-ca-cert-publisher",
            requests: ("POST", "/configmaps"),
            how: Forgets,
            users: (&["team"], false),
            found: "has no certificate",
        },
        Broken {
            account: "persistent-volume-binder",
            requests: ("PUT", "/persistentvolumes/"),
            how: Forgets,
            users: (&["volume", "claim"], false),
            found: "its phase",
        },
        Broken {
            account: "persistent-volume-binder",
            requests: ("DELETE", "/persistentvolumes/"),
            how: Forgets,
            users: (&["replicaset"], true),
            found: "is released and should be gone",
        },
        Broken {
            account: "attachdetach-controller",
            requests: ("POST", "/volumeattachments"),
            how: Forgets,
            users: (&["statefulset"], false),
            found: "its attached volumes",
        },
        Broken {
            account: "expand-controller",
            requests: ("PUT", "/persistentvolumes/"),
            how: Forgets,
            users: (&["statefulset"], false),
            found: "is smaller than it should be",
        },
        Broken {
            account: "pvc-protection-controller",
            requests: ("PUT", "/persistentvolumeclaims/"),
            how: Forgets,
            users: (&["claim"], true),
            found: "is still being deleted",
        },
    ]);
}

#[test]
fn loops_that_write_something_else_are_found() {
    run(&[
        Broken {
            account: "deployment-controller",
            requests: ("PUT", "/status"),
            how: Writes(|object| one_more(object, "status", "updatedReplicas")),
            users: (&["deployment"], false),
            found: "what it reports",
        },
        Broken {
            account: "replicaset-controller",
            requests: ("POST", "/pods"),
            how: Writes(|object| object.object_or_new("metadata").set("labels", Value::Null)),
            users: (&["replicaset"], false),
            found: "replicaset",
        },
        Broken {
            account: "endpointslice-controller",
            requests: ("PUT", "/endpointslices/"),
            how: Writes(|object| object.set("endpoints", Vec::<Value>::new())),
            users: (
                &["service", "replicaset", "deployment", "statefulset", "daemonset", "replicationcontroller"],
                false,
            ),
            found: "its slices",
        },
        Broken {
            account: "horizontal-pod-autoscaler",
            requests: ("PUT", "/scale"),
            how: Writes(|object| one_more(object, "spec", "replicas")),
            users: (&["autoscaler", "deployment", "statefulset"], false),
            found: "the replicas should be",
        },
    ]);
}

/// A status that is never what the loop wants it to be makes it write for ever.
#[test]
fn a_loop_that_writes_without_end_is_found() {
    run(&[Broken {
        account: "replicaset-controller",
        requests: ("PUT", "/status"),
        how: Writes(|object| {
            let version = object.at("metadata").text("resourceVersion").parse::<i64>().unwrap_or(0);
            object.object_or_new("status").set("fullyLabeledReplicas", version % 2);
        }),
        users: (&["replicaset"], false),
        found: "times within",
    }]);
}

/// A watch may be far behind: then what depends on something is there before the collector knows of it.
#[test]
fn nothing_is_lost_that_the_garbage_collector_sees_late() {
    let account = "generic-garbage-collector";
    let late = Sabotage { account, method: "", place: "/pods", how: Late(Duration::from_secs(100)) };
    for seed in 0..SEEDS {
        let found = found_wrong(seed, &["replicaset"], true, Some(late)).expect("it runs");
        assert!(!found.contains("outlived"), "seed {seed}: {found}");
    }
}
