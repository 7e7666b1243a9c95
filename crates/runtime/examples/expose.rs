//! An operator: every Deployment with the annotation `example.com/expose: "PORT"` gets a Service of its name.
//!
//! `cargo run --example expose` runs it against the cluster of `$KUBECONFIG`, as an operator in a pod would run against
//! its own.

use ambient::Ambient;
use kinds::{Deployment, Object, Service};
use object::json;
use runtime::{Caches, Client, Controller, Election, Https, Identity, Manager, Note, Plan, Recorder, Request, Timing};
use std::path::Path;
use std::sync::Arc;

const EXPOSE: &str = "example.com/expose";

/// What it watches, and which Deployments that concerns.
pub fn controller() -> Controller {
    Controller::new("expose").primary::<Deployment>().owns::<Service, Deployment>().plans(|caches, request| {
        let observed = observe(caches, request);
        observed.map(|observed| plan(&observed)).unwrap_or_default()
    })
}

/// All that a decision depends on.
#[derive(Debug)]
pub struct Observed {
    pub deployment: Arc<Object<Deployment>>,
    pub service: Option<Arc<Object<Service>>>,
}

/// Reads from caches and nowhere else.
fn observe(caches: &Caches, request: &Request) -> Option<Observed> {
    let deployment = caches.of::<Deployment>().get(&request.key)?;
    let service = caches.of::<Service>().get(&request.key);
    Some(Observed { deployment, service })
}

/// Decides, without a client and without a clock: the same observation always gives the same plan.
pub fn plan(Observed { deployment, service }: &Observed) -> Plan {
    let mut plan = Plan::default();
    let meta = &deployment.metadata;
    let port: Option<u16> = meta.annotation(EXPOSE).parse().ok();
    let own = service.as_ref().filter(|service| service.metadata.is_controlled_by(&meta.uid));
    match (port.filter(|_| !meta.is_being_deleted()), service, own) {
        (Some(port), None, _) => {
            plan.create::<Service>(json!({
                "metadata": {
                    "name": meta.name, "namespace": meta.namespace,
                    "ownerReferences": [meta.controller_reference(&<Deployment as kinds::Kind>::ID)],
                },
                "spec": { "selector": deployment.spec.template.labels, "ports": [{ "port": port }] },
            }))
            .on_success(Note::normal(deployment, "Exposed", format!("Exposed on port {port}")));
        }
        (Some(port), _, Some(service)) if service.spec.ports[0].port != i32::from(port) => {
            plan.patch(service, json!({ "spec": { "ports": [{ "port": port, "protocol": "TCP" }] } }));
        }
        (None, _, Some(service)) => {
            plan.delete(service);
        }
        // It is as wanted, or there is another's Service of that name, which is left alone.
        _ => {}
    }
    plan
}

/// Runs the operator until the tasks are stopped; of several that run, one works.
pub async fn run(kubeconfig: &Path, identity: &str, ambient: &Ambient) -> Result<(), Box<dyn std::error::Error>> {
    let transport = Https::from_kubeconfig(kubeconfig, ambient)?;
    let client = Client::new(Arc::new(transport), "expose");
    let registry = prometheus::Registry::new();
    let recorder = Recorder::new(client.clone(), "expose", "", ambient, &registry);
    let tell: runtime::Tell = Arc::new(move |note| recorder.record(note));
    let who = |_: &Controller| Identity { client: client.clone(), tell: tell.clone() };
    let manager = Manager::start(vec![controller()], &client, who, ambient, &registry);
    let election = Election {
        client: client.clone(),
        tell,
        namespace: "default".to_owned(),
        name: "expose".to_owned(),
        identity: identity.to_owned(),
        timing: Timing::default(),
        clock: ambient.clock.clone(),
        random: ambient.random.fork(),
    };
    let manager = &manager;
    election.run(ambient.tasks.clone(), |term| async move { manager.work(&term).await }).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kubeconfig = std::env::var("KUBECONFIG")?;
    run(Path::new(&kubeconfig), "this-one", &Ambient::real()).await
}
