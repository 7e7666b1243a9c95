//! `pods/log`: which container is meant and what of it, as the query says. The log itself is the node's.

use super::{Answer, node};
use crate::body::Body;
use crate::context::Context;
use crate::logs::{LogRequest, LogStream};
use crate::pipeline::method_not_allowed;
use crate::render;
use crate::request::Query;
use ambient::Tasks;
use http::StatusCode;
use object::field::{Error, Path};
use object::{ApiError, LogExcerpt, Value, View, time};

pub(super) async fn serve(ctx: &Context) -> Answer {
    if ctx.info.verb != "get" {
        return Err(method_not_allowed());
    }
    let key = ctx.hub.key(&ctx.target.namespace, &ctx.target.name);
    let pod: Value = ctx.api.registry.get(&key).await?.ok_or_else(|| ctx.not_found())?.decode();
    let now = i64::try_from(ctx.api.ambient.clock.wall().0 / 1000).unwrap_or(i64::MAX);
    let excerpt = excerpt(&ctx.query, &ctx.target.name, now)?;
    let wanted = LogRequest {
        node: pod.at("spec").text("nodeName").to_owned(),
        namespace: ctx.target.namespace.clone(),
        pod: ctx.target.name.clone(),
        container: container(&pod, ctx.query.get("container").unwrap_or_default())?,
        excerpt,
    };
    if wanted.node.is_empty() {
        return Ok(render::text(StatusCode::NO_CONTENT, ""));
    }
    let opened = match ctx.api.logs.get() {
        Some(source) => source.open(&wanted).await,
        None => None,
    };
    match opened {
        Some(log) => {
            let body = body(log?, ctx.api.ambient.tasks.clone());
            Ok(render::response(StatusCode::OK, "text/plain", body))
        }
        None => node::serve(ctx).await,
    }
}

/// The log as a body that ends with the server, if not before.
fn body(log: Box<dyn LogStream>, tasks: Tasks) -> Body {
    Body::stream(futures::stream::unfold((log, tasks), |(mut log, tasks)| async move {
        tokio::select! {
            biased;
            _ = tasks.stopping() => None,
            piece = log.next() => Some((piece?, (log, tasks))),
        }
    }))
}

fn excerpt(query: &Query, pod: &str, now: i64) -> Result<LogExcerpt, ApiError> {
    let number = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(text) => text
            .parse::<i64>()
            .map(Some)
            .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
    };
    let (tail, limit, seconds) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
    let moment = query.get("sinceTime").map(|text| {
        let parsed = time::parse(text).map(|(seconds, _)| seconds);
        parsed.ok_or_else(|| ApiError::bad_request(format!("parsing time {text:?}: cannot be read")))
    });
    let moment = moment.transpose()?;
    let mut errors = Vec::new();
    let mut check = |name: &str, value: Option<i64>, least: i64, detail: &str| {
        if let Some(value) = value.filter(|value| *value < least) {
            errors.push(Error::invalid(&Path::new(name), value, detail));
        }
    };
    check("tailLines", tail, 0, "must be greater than or equal to 0");
    check("limitBytes", limit, 1, "must be greater than 0");
    check("sinceSeconds", seconds.filter(|_| moment.is_none()), 1, "must be greater than 0");
    if moment.is_some() && seconds.is_some() {
        let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(Error::forbidden(&Path::default(), detail));
    }
    if !errors.is_empty() {
        return Err(ApiError::invalid("", "PodLogOptions", pod, &errors));
    }
    Ok(LogExcerpt {
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        timestamps: query.flag("timestamps"),
        since: moment.or(seconds.map(|seconds| now.saturating_sub(seconds))),
        tail_lines: tail.map(i64::unsigned_abs),
        limit_bytes: limit.map(i64::unsigned_abs),
    })
}

/// The container that is meant: the one that is named, or the only one there is.
fn container(pod: &Value, named: &str) -> Result<String, ApiError> {
    let name = pod.at("metadata").text("name");
    let of = |field: &str| -> Vec<&str> {
        pod.at("spec").items(field).iter().map(|container| container.text("name")).collect()
    };
    let (containers, init, ephemeral) = (of("containers"), of("initContainers"), of("ephemeralContainers"));
    if !named.is_empty() {
        return match [&containers, &init, &ephemeral].iter().any(|kind| kind.contains(&named)) {
            true => Ok(named.to_owned()),
            false => Err(ApiError::bad_request(format!("container {named} is not valid for pod {name}"))),
        };
    }
    if let ([only], true, true) = (containers.as_slice(), init.is_empty(), ephemeral.is_empty()) {
        return Ok((*only).to_owned());
    }
    let mut message =
        format!("a container name must be specified for pod {name}, choose one of: [{}]", containers.join(" "));
    for (kind, names) in [("init", init), ("ephemeral", ephemeral)] {
        if !names.is_empty() {
            message.push_str(&format!(" or one of the {kind} containers: [{}]", names.join(" ")));
        }
    }
    Err(ApiError::bad_request(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_container_is_named_or_the_only_one() {
        let pod = |containers: &[&str], init: &[&str]| {
            let named = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>();
            json!({ "metadata": { "name": "p" }, "spec": { "containers": named(containers), "initContainers": named(init) } })
        };
        let said = |pod: &Value, name: &str| container(pod, name).map_err(|error| error.message().to_owned());
        assert_eq!(said(&pod(&["a"], &[]), ""), Ok("a".to_owned()));
        assert_eq!(said(&pod(&["a", "b"], &["i"]), "i"), Ok("i".to_owned()));
        for (pod, name, refusal) in [
            (pod(&["a"], &[]), "x", "container x is not valid for pod p"),
            (pod(&["a", "b"], &[]), "", "a container name must be specified for pod p, choose one of: [a b]"),
            (
                pod(&["a"], &["i", "j"]),
                "",
                "a container name must be specified for pod p, choose one of: [a] or one of the init containers: [i j]",
            ),
        ] {
            assert_eq!(said(&pod, name), Err(refusal.to_owned()));
        }
    }

    #[test]
    fn options_are_read_and_checked() {
        let read =
            |query: &str| excerpt(&Query::parse(Some(query)), "p", 1000).map_err(|error| error.message().to_owned());
        let asked =
            read("tailLines=3&limitBytes=10&sinceSeconds=60&follow=true&previous=false&timestamps=true").unwrap();
        assert_eq!((asked.tail_lines, asked.limit_bytes, asked.since), (Some(3), Some(10), Some(940)));
        assert_eq!((asked.follow, asked.previous, asked.timestamps), (true, false, true));
        assert_eq!(read("sinceTime=1970-01-01T00:00:07Z").unwrap().since, Some(7));
        for (query, refusal) in [
            ("tailLines=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
            (
                "tailLines=-1",
                "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
            ("limitBytes=0", "PodLogOptions \"p\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"),
        ] {
            assert_eq!(read(query), Err(refusal.to_owned()));
        }
    }
}
