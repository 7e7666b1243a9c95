//! What the algorithms over schemas must reach, measured: each row prints the figure, its bound, and whether it holds.
//!
//! `cargo bench -p schema` runs all rows. Times vary on a shared machine, so the best of several rounds counts.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use schema::apply::{Author, FieldSet, Kind, Managers, fields_of, update};
use schema::builtin;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 20;
const REPEATS: u32 = 2000;

/// A pod of 1.2 KB as a controller creates it.
const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-6d4cf56db6-","labels":{"app":"web",
"pod-template-hash":"6d4cf56db6"},"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,
"controller":true,"kind":"ReplicaSet","name":"web-6d4cf56db6","uid":"5f0a4a3c-8c46-4d06-9d7c-0f6f2f9e9b7a"}]},
"spec":{"containers":[{"name":"web","image":"registry.example/web:1.2.3","imagePullPolicy":"IfNotPresent",
"ports":[{"containerPort":8080,"name":"http","protocol":"TCP"}],"env":[{"name":"MODE","value":"production"},
{"name":"NODE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}],"resources":{"limits":
{"memory":"128Mi"},"requests":{"cpu":"100m","memory":"64Mi"}},"terminationMessagePath":"/dev/termination-log",
"terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/data","name":"data"}]}],"dnsPolicy":"ClusterFirst",
"enableServiceLinks":true,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},
"terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready",
"operator":"Exists","tolerationSeconds":300}],"volumes":[{"emptyDir":{},"name":"data"}]}}"#;

fn main() {
    let pod: object::Value = POD.parse().unwrap();
    let node = builtin().named("core.v1.Pod").unwrap();
    let reset = FieldSet::of_fields(["status"]);
    let kind = Kind { schema: builtin(), node, api_version: "v1", alike: &[], reset: &reset };
    let author = Author { manager: "replicaset-controller", subresource: "", time: "2024-01-01T00:00:00Z" };
    let mut out = String::new();
    let fields = best_micros(|| {
        out.clear();
        fields_of(builtin(), node, black_box(&pod)).unwrap().write(&mut out);
        black_box(&out);
    });
    let create = best_micros(|| {
        out.clear();
        update(&kind, &author, None, black_box(&pod), Managers::default()).unwrap().write(&mut out);
        black_box(&out);
    });
    let rows =
        [("fields of a pod of 1.2 KB, and their JSON", fields), ("managed fields of a pod that is created", create)];
    let mut missed = 0;
    for (name, micros) in rows {
        const BOUND: f64 = 15.0;
        let verdict = if micros <= BOUND { "ok" } else { "MISSED" };
        println!("{name:<58} {micros:>13.2} {:<9} at most {BOUND:<11} {verdict}", "us");
        missed += usize::from(micros > BOUND);
    }
    assert_eq!(missed, 0, "{missed} figures missed their bound");
}

fn best_micros(mut run: impl FnMut()) -> f64 {
    #[allow(clippy::disallowed_methods, reason = "this crate has no clock of its own, and a benchmark is not replayed")]
    let now = std::time::Instant::now;
    let mut round = || {
        let start = now();
        (0..REPEATS).for_each(|_| run());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(REPEATS)
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}
