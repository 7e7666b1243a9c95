//! Everything that is served: what discovery says of it, and that an object of every kind can be created and read in
//! every format.

#[path = "discovery/examples.rs"]
mod examples;

use http::header;
use object::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use testkit::cluster::Cluster;
use testkit::https::{Client, get, with_body};

const FACTS: &str = include_str!("discovery/resources.txt");
const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

async fn fetch(client: &Client, path: &str) -> Value {
    let answer = client.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn words(value: &Value) -> String {
    let mut words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.sort_unstable();
    words.join(",")
}

/// The versions of groups that are served, `v1` and `apps/v1`.
async fn versions(client: &Client) -> Vec<String> {
    let mut versions: Vec<String> = vec!["v1".to_owned()];
    for group in fetch(client, "/apis").await["groups"].as_array().unwrap() {
        let of_group = group["versions"].as_array().unwrap();
        versions.extend(of_group.iter().map(|version| text(version, "groupVersion").to_owned()));
    }
    versions
}

async fn resources(client: &Client, version: &str) -> Vec<Value> {
    let path = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
    fetch(client, &path).await["resources"].as_array().unwrap().clone()
}

/// A version's resources in the words of the facts, by name.
fn described(version: &str, resources: &[Value]) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for resource in resources {
        let name = text(resource, "name");
        let verbs = words(&resource["verbs"]);
        let line = match name.split_once('/') {
            Some((_, subresource)) => {
                let own = if text(resource, "version").is_empty() {
                    version.to_owned()
                } else {
                    format!("{}/{}", text(resource, "group"), text(resource, "version"))
                };
                format!("  {subresource} {}/{} {verbs}", own.trim_start_matches('/'), text(resource, "kind"))
            }
            None => {
                let scope = if resource["namespaced"] == true { "namespaced" } else { "cluster" };
                let verbs = if verbs == ALL_VERBS { "all" } else { &verbs };
                let mut line = format!(
                    "{version} {name} {} {} {scope} {verbs}",
                    text(resource, "kind"),
                    text(resource, "singularName")
                );
                for (label, field) in [("short", "shortNames"), ("categories", "categories")] {
                    let words = words(&resource[field]);
                    if !words.is_empty() {
                        let _ = write!(line, " {label}={words}");
                    }
                }
                line
            }
        };
        lines.insert(name.to_owned(), line);
    }
    lines
}

#[tokio::test]
async fn what_is_served_is_what_kubernetes_serves() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let mut served = String::new();
    let mut versions = versions(&client).await;
    versions
        .sort_by_key(|version| version.rsplit_once('/').map(|(group, version)| (group.to_owned(), version.to_owned())));
    for version in versions.iter().filter(|version| !version.contains("alpha") && !version.contains("beta")) {
        for line in described(version, &resources(&client, version).await).into_values() {
            let _ = writeln!(served, "{line}");
        }
    }
    let facts: Vec<&str> = FACTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let served: Vec<&str> = served.lines().collect();
    let missing: Vec<_> = facts.iter().filter(|line| !served.contains(line)).collect();
    let surplus: Vec<_> = served.iter().filter(|line| !facts.contains(line)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:#?}\nsurplus: {surplus:#?}");
    assert_eq!(served, facts, "the same, in another order");
}

#[tokio::test]
async fn what_is_still_tried_out_is_served_only_where_it_is_asked_for() {
    const GROUPS: &str = "scheduling.k8s.io/v1alpha2";
    const PODS: &str = "/api/v1/namespaces/default/pods";
    for (asked, is_there) in [("", false), (GROUPS, true), ("api/alpha=true", true)] {
        let cluster = Cluster::serving(asked).await;
        let client = cluster.client();
        assert_eq!(versions(&client).await.iter().any(|version| version == GROUPS), is_there, "{asked}");
        let documents = fetch(&client, "/openapi/v3").await;
        assert_eq!(documents["paths"].get(format!("apis/{GROUPS}").as_str()).is_some(), is_there, "{asked}");
        let status = client.get(&format!("/apis/{GROUPS}/podgroups")).await.status;
        assert_eq!(status, if is_there { 200 } else { 404 }, "{asked}");
        let roles = fetch(&client, "/apis/rbac.authorization.k8s.io/v1/clusterroles").await.to_string();
        assert_eq!(roles.contains("podgroups"), is_there, "{asked}");
        // Of pods, what they say of groups is kept.
        let mut pod = examples::example("v1", "Pod");
        pod["spec"]["schedulingGroup"] = json!({ "podGroupName": "g" });
        let made = client.send(with_body(http::Method::POST, PODS, JSON, pod.to_string().into_bytes())).await;
        assert_eq!(made.json()["spec"].get("schedulingGroup").is_some(), is_there, "{asked}: {made:?}");
    }
    for (asked, expected) in [
        ("", &[][..]),
        ("resource.k8s.io/v1beta2", &["v1beta2"]),
        ("resource.k8s.io/v1alpha3", &["v1alpha3", "v1beta2"]),
        ("api/beta=true", &["v1beta2"]),
    ] {
        let cluster = Cluster::serving(asked).await;
        let client = cluster.client();
        let served = versions(&client).await;
        let mut served: Vec<&str> =
            served.iter().filter_map(|version| version.strip_prefix("resource.k8s.io/")).collect();
        served.retain(|version| *version != "v1");
        served.sort_unstable();
        assert_eq!(served, expected, "{asked}");
    }
    let cluster = Cluster::serving(GROUPS).await;
    let lines = described(GROUPS, &resources(&cluster.client(), GROUPS).await);
    let expected = [
        format!("{GROUPS} podgroups PodGroup podgroup namespaced all"),
        format!("  status {GROUPS}/PodGroup get,patch,update"),
        format!("{GROUPS} workloads Workload workload namespaced all"),
    ];
    assert_eq!(lines.into_values().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn discovery_in_one_document_says_the_same_as_in_many() {
    let cluster = Cluster::serving("api/all=true").await;
    let client = cluster.client();
    let mut aggregated = BTreeMap::new();
    for path in ["/api", "/apis"] {
        let mut request = get(path);
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        request.headers_mut().insert(header::ACCEPT, accept.parse().unwrap());
        for group in client.send(request).await.json()["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                let names = version["resources"].as_array().unwrap().iter().flat_map(|resource| {
                    let name = text(resource, "resource").to_owned();
                    let below = resource["subresources"].as_array().into_iter().flatten();
                    let below = below.map(|sub| format!("{name}/{}", text(sub, "subresource"))).collect::<Vec<_>>();
                    std::iter::once(name).chain(below)
                });
                let mut names: Vec<String> = names.collect();
                names.sort();
                let group = group["metadata"]["name"].as_str().unwrap_or_default();
                let version = format!("{group}/{}", text(version, "version")).trim_start_matches('/').to_owned();
                aggregated.insert(version, names);
            }
        }
    }
    let mut apart = BTreeMap::new();
    for version in versions(&client).await {
        let mut names: Vec<String> =
            resources(&client, &version).await.iter().map(|resource| text(resource, "name").to_owned()).collect();
        names.sort();
        apart.insert(version, names);
    }
    assert_eq!(aggregated, apart);
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Sends a body in one format and asks for the answer in another.
async fn exchange(
    client: &Client,
    method: http::Method,
    path: &str,
    media: &str,
    body: Vec<u8>,
    accept: &str,
) -> (u16, Vec<u8>) {
    let mut request = with_body(method, path, media, body);
    request.headers_mut().insert(header::ACCEPT, accept.parse().unwrap());
    let answer = client.send(request).await;
    (answer.status.as_u16(), answer.body.to_vec())
}

#[tokio::test]
async fn an_object_of_every_kind_is_the_same_in_every_format() {
    let cluster = Cluster::serving("api/all=true").await;
    let client = cluster.client();
    examples::prepare(&client).await;
    let mut wrong = Vec::new();
    let mut tried = 0;
    for version in versions(&client).await {
        for resource in resources(&client, &version).await {
            let verbs = words(&resource["verbs"]);
            let (name, kind) = (text(&resource, "name"), text(&resource, "kind"));
            if name.contains('/') || !verbs.contains("create") || !verbs.contains("get") {
                continue;
            }
            let group = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
            let namespace = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
            let collection = format!("{group}{namespace}/{name}");
            tried += 1;
            if let Err(difference) = round_trip(&client, &collection, &version, kind).await {
                wrong.push(format!("{version} {kind}: {difference}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 60, "only {tried} kinds were found");
}

/// So often an object is read again because a loop has changed it. A format that changes it does so each time.
const MAX_READS: usize = 50;

/// Creates an object from JSON, reads it in each format, and sends back what was read, which changes nothing.
async fn round_trip(client: &Client, collection: &str, version: &str, kind: &str) -> Result<(), String> {
    let example = examples::example(version, kind);
    let name = example["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let body = example.to_string().into_bytes();
    let (status, made) = exchange(client, http::Method::POST, collection, JSON, body, JSON).await;
    if status != 201 {
        return Err(say("create", status, &made));
    }
    let path = format!("{collection}/{name}");
    for media in [JSON, YAML, PROTOBUF] {
        let mut outcome = Err("it was never read".to_owned());
        for _ in 0..MAX_READS {
            outcome = send_back(client, &path, media).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome?;
    }
    let (status, gone) =
        exchange(client, http::Method::DELETE, &path, JSON, json!({}).to_string().into_bytes(), JSON).await;
    if status != 200 && status != 202 {
        return Err(say("delete", status, &gone));
    }
    Ok(())
}

/// Reads an object in a format and updates it with what was read. It must be the same afterwards.
async fn send_back(client: &Client, path: &str, media: &str) -> Result<(), String> {
    let before = client.get(path).await.json();
    let (status, read) = exchange(client, http::Method::GET, path, "", Vec::new(), media).await;
    if status != 200 {
        return Err(say(media, status, &read));
    }
    let (status, back) = exchange(client, http::Method::PUT, path, media, read, JSON).await;
    if status != 200 {
        return Err(say(&format!("update as {media}"), status, &back));
    }
    let back: Value = serde_json::from_slice(&back).map_err(|error| error.to_string())?;
    if back == before { Ok(()) } else { Err(format!("{media} changes it: {before} / {back}")) }
}

fn say(what: &str, status: u16, body: &[u8]) -> String {
    format!("{what}: {status} {}", String::from_utf8_lossy(body))
}
