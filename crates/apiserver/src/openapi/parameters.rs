//! The parameters of URLs: what each is called, what it is, and which operations take it.

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Path,
    Query,
}

/// Compared by name first: documents list parameters in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: Place,
    /// The type in OpenAPI's words.
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

impl Parameter {
    /// What it goes by where parameters are shared. Two have the same name, in different places.
    pub(super) fn key(&self) -> String {
        let place = match self.place {
            Place::Path => "path",
            Place::Query => "query",
        };
        format!("{}-{place}-{}", self.name, self.kind)
    }
}

const fn path(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: Place::Path, kind: "string", description }
}

const fn query(name: &'static str, kind: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind, description }
}

pub(super) const NAME: Parameter = path("name", "The name of the object.");
pub(super) const NAMESPACE: Parameter = path("namespace", "The namespace of the object.");
pub(super) const PROXIED: Parameter = path("path", "The path that the request is passed on to.");
pub(super) const PROXIED_QUERY: Parameter = query("path", "string", "The path that the request is passed on to.");
pub(super) const PRETTY: Parameter = query("pretty", "string", "If \"true\", the answer is indented.");

const CONTINUE: Parameter = query("continue", "string", "Where a list goes on, as the page before said.");
const DRY_RUN: Parameter = query("dryRun", "string", "\"All\": everything is done but storing the result.");
const FIELD_MANAGER: Parameter =
    query("fieldManager", "string", "The name under which the author of the change owns fields.");
const FIELD_SELECTOR: Parameter = query("fieldSelector", "string", "Only objects with these fields.");
const FIELD_VALIDATION: Parameter =
    query("fieldValidation", "string", "What unknown and repeated fields are: Ignore, Warn or Strict.");
const GRACE: Parameter = query("gracePeriodSeconds", "integer", "How long the object may take to end.");
const IGNORE_UNREADABLE: Parameter = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "Whether an object that cannot be read is deleted all the same.",
);
const LABEL_SELECTOR: Parameter = query("labelSelector", "string", "Only objects with these labels.");
const LIMIT: Parameter = query("limit", "integer", "The most objects of a page.");
const ORPHAN: Parameter = query("orphanDependents", "boolean", "An old form of propagationPolicy.");
const PROPAGATION: Parameter = query(
    "propagationPolicy",
    "string",
    "What becomes of the objects that belong to this one: Orphan, Background or Foreground.",
);
const VERSION: Parameter = query("resourceVersion", "string", "The version of the store that is asked about.");
const VERSION_MATCH: Parameter =
    query("resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan.");
const INITIAL_EVENTS: Parameter =
    query("sendInitialEvents", "boolean", "Whether a watch begins with the objects that are there.");
const TIMEOUT: Parameter = query("timeoutSeconds", "integer", "How long a list or watch may last.");

pub(super) const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean", "Whether a watch may tell its position from time to time."),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    VERSION,
    VERSION_MATCH,
    INITIAL_EVENTS,
    TIMEOUT,
    query("watch", "boolean", "Whether changes are told as they happen."),
];

pub(super) const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

pub(super) const PATCH: &[Parameter] = &[
    DRY_RUN,
    FIELD_MANAGER,
    FIELD_VALIDATION,
    query("force", "boolean", "Whether apply takes fields over from other managers."),
];

pub(super) const DELETE: &[Parameter] = &[DRY_RUN, GRACE, IGNORE_UNREADABLE, ORPHAN, PROPAGATION];

pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE,
    IGNORE_UNREADABLE,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN,
    PROPAGATION,
    VERSION,
    VERSION_MATCH,
    INITIAL_EVENTS,
    TIMEOUT,
];

const CONTAINER: Parameter = query("container", "string", "The container; the only one if it is not said.");

pub(super) const LOG: &[Parameter] = &[
    CONTAINER,
    query("follow", "boolean", "Whether new lines are told as they come."),
    query("insecureSkipTLSVerifyBackend", "boolean", "Whether the certificate of the node is not checked."),
    query("limitBytes", "integer", "The most bytes that are sent."),
    query("previous", "boolean", "Whether the log is that of the container before the last restart."),
    query("sinceSeconds", "integer", "Only lines that are at most this old."),
    query("stream", "string", "Which output: All, Stdout or Stderr."),
    query("tailLines", "integer", "Only this many lines from the end."),
    query("timestamps", "boolean", "Whether each line begins with its time."),
];

pub(super) const ATTACH: &[Parameter] = &[
    CONTAINER,
    query("stderr", "boolean", "Whether the standard error output is passed on."),
    query("stdin", "boolean", "Whether the standard input is passed on."),
    query("stdout", "boolean", "Whether the standard output is passed on."),
    query("tty", "boolean", "Whether there is a terminal."),
];

pub(super) const COMMAND: Parameter =
    query("command", "string", "The program to run, and its arguments, one parameter each.");
pub(super) const PORTS: Parameter = query("ports", "integer", "The ports to forward.");
