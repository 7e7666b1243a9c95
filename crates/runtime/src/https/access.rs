//! Where the server is, how to recognise it and who we are: from a kubeconfig, or from what is mounted into a pod.
//!
//! What would make the connection unsafe or run other programs is refused, each with a sentence that says so.

use bytes::Bytes;
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a pod finds its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// No kubeconfig, certificate or token is larger.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The namespace of those who name none.
const DEFAULT_NAMESPACE: &str = "default";

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("cannot read {}: {cause}", path.display())]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{} is no kubeconfig: {cause}", path.display())]
    Syntax { path: PathBuf, cause: String },
    #[error("the kubeconfig has no {what} {name:?}")]
    Missing { what: &'static str, name: String },
    #[error("{0}")]
    Refused(String),
}

fn refused<T>(why: impl Into<String>) -> Result<T, AccessError> {
    Err(AccessError::Refused(why.into()))
}

/// How a server is reached, and as whom.
#[derive(Clone)]
pub struct Access {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// What comes before the paths of the API; empty or without a slash at its end.
    pub(super) prefix: String,
    /// What the server's certificate must be for, if not for the host.
    pub(super) server_name: Option<String>,
    /// Whom to believe that it is the server, as PEM.
    pub(super) authorities: Bytes,
    pub(super) certificate: Option<Certificate>,
    pub(super) token: Option<Token>,
    namespace: String,
}

/// A client certificate and its key, as PEM.
#[derive(Clone)]
pub(super) struct Certificate {
    pub(super) chain: Bytes,
    pub(super) key: Bytes,
}

#[derive(Clone)]
pub(super) enum Token {
    Fixed(String),
    /// Read again from time to time: it is replaced before it expires.
    File(PathBuf),
}

/// Without keys and tokens.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.authority.as_str()).finish_non_exhaustive()
    }
}

impl Access {
    /// As the current context of a kubeconfig says.
    pub fn from_kubeconfig(path: &Path) -> Result<Self, AccessError> {
        let syntax = |cause: String| AccessError::Syntax { path: path.to_owned(), cause };
        let text = String::from_utf8(read(path)?.to_vec()).map_err(|error| syntax(error.to_string()))?;
        let config: Kubeconfig = serde_saphyr::from_str(&text).map_err(|error| syntax(error.to_string()))?;
        let context = find(&config.contexts, "context", &config.current_context)?;
        let context = context.context.clone();
        let cluster = &find(&config.clusters, "cluster", &context.cluster)?.cluster;
        let user = &find(&config.users, "user", &context.user)?.user;
        let dir = path.parent().unwrap_or(Path::new("."));
        cluster.check()?;
        user.check()?;
        let authorities = material(dir, &cluster.certificate_authority, &cluster.certificate_authority_data)?;
        let Some(authorities) = authorities else {
            return refused("the kubeconfig names no certificate-authority, so the server cannot be recognised");
        };
        let chain = material(dir, &user.client_certificate, &user.client_certificate_data)?;
        let key = material(dir, &user.client_key, &user.client_key_data)?;
        let certificate = match (chain, key) {
            (Some(chain), Some(key)) => Some(Certificate { chain, key }),
            (None, None) => None,
            _ => return refused("the kubeconfig has a client certificate without its key, or a key without it"),
        };
        // Upstream's order: a file, if there is one, wins.
        let token = match (user.token_file.as_str(), user.token.as_str()) {
            ("", "") => None,
            ("", token) => Some(Token::Fixed(token.to_owned())),
            (file, _) => Some(Token::File(dir.join(file))),
        };
        let server_name = Some(cluster.tls_server_name.clone()).filter(|name| !name.is_empty());
        Access::new(&cluster.server, server_name, authorities, certificate, token, &context.namespace)
    }

    /// As a pod finds it.
    pub fn from_service_account() -> Result<Self, AccessError> {
        let variable = |name: &str| match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(value),
            _ => refused(format!("{name} is not set: this is no pod, or it has no service account")),
        };
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        Access::mounted(Path::new(SERVICE_ACCOUNT), &host, &port)
    }

    pub(super) fn mounted(dir: &Path, host: &str, port: &str) -> Result<Self, AccessError> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let authorities = read(&dir.join("ca.crt"))?;
        let namespace = read(&dir.join("namespace"))?;
        let namespace = String::from_utf8_lossy(&namespace);
        let token = dir.join("token");
        // Better now than with the first request.
        read(&token)?;
        let server = format!("https://{host}:{port}");
        Access::new(&server, None, authorities, None, Some(Token::File(token)), namespace.trim())
    }

    fn new(
        server: &str,
        server_name: Option<String>,
        authorities: Bytes,
        certificate: Option<Certificate>,
        token: Option<Token>,
        namespace: &str,
    ) -> Result<Self, AccessError> {
        let url = server.parse::<Uri>().map(Uri::into_parts);
        let url = url.map_err(|error| AccessError::Refused(format!("{server:?} is no URL: {error}")))?;
        let (Some(scheme), Some(authority)) = (url.scheme, url.authority) else {
            return refused(format!("{server:?} does not say where the server is"));
        };
        if scheme != Scheme::HTTPS {
            return refused(format!("{server:?} is not https: requests would be readable by anybody"));
        }
        let prefix = url.path_and_query.as_ref().map_or("", PathAndQuery::path).trim_end_matches('/').to_owned();
        let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }.to_owned();
        Ok(Access { scheme, authority, prefix, server_name, authorities, certificate, token, namespace })
    }

    /// Where objects are meant to be if nothing else is said.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// What stands in the file, or inline in base64, which wins as upstream.
fn material(dir: &Path, file: &str, data: &str) -> Result<Option<Bytes>, AccessError> {
    match (file, data) {
        ("", "") => Ok(None),
        (file, "") => read(&dir.join(file)).map(Some),
        (_, data) => match object::base64::decode(data) {
            Some(bytes) => Ok(Some(bytes.into())),
            None => refused("data in the kubeconfig is not base64"),
        },
    }
}

/// Reads a small file.
pub(super) fn read(path: &Path) -> Result<Bytes, AccessError> {
    let failed = |cause| AccessError::Read { path: path.to_owned(), cause };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        return refused(format!("{} has {size} bytes, and {MAX_FILE_BYTES} are allowed", path.display()));
    }
    std::fs::read(path).map(Bytes::from).map_err(failed)
}

#[derive(Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[derive(Default)]
struct Kubeconfig {
    current_context: String,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: User,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

trait Named {
    fn name(&self) -> &str;
}

macro_rules! named {
    ($($kind:ident),*) => { $(impl Named for $kind { fn name(&self) -> &str { &self.name } })* };
}
named!(NamedCluster, NamedUser, NamedContext);

fn find<'c, N: Named>(all: &'c [N], what: &'static str, name: &str) -> Result<&'c N, AccessError> {
    let found = all.iter().find(|item| item.name() == name);
    found.ok_or_else(|| AccessError::Missing { what, name: name.to_owned() })
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: String,
    certificate_authority_data: String,
    tls_server_name: String,
    insecure_skip_tls_verify: bool,
    proxy_url: String,
}

impl Cluster {
    fn check(&self) -> Result<(), AccessError> {
        if self.insecure_skip_tls_verify {
            return refused("insecure-skip-tls-verify is not supported: name the certificate-authority instead");
        }
        if !self.proxy_url.is_empty() {
            return refused("proxy-url is not supported");
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: String,
    client_certificate_data: String,
    client_key: String,
    client_key_data: String,
    token: String,
    #[serde(rename = "tokenFile")]
    token_file: String,
    username: String,
    exec: Option<serde::de::IgnoredAny>,
    auth_provider: Option<serde::de::IgnoredAny>,
    #[serde(rename = "as")]
    impersonate: String,
}

impl User {
    fn check(&self) -> Result<(), AccessError> {
        if self.exec.is_some() || self.auth_provider.is_some() {
            return refused("exec and auth-provider plugins are not supported: use a token or a client certificate");
        }
        if !self.username.is_empty() {
            return refused("user names with passwords are not supported: use a token or a client certificate");
        }
        if !self.impersonate.is_empty() {
            return refused("impersonation by kubeconfig is not supported");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(cluster: &str, user: &str) -> Result<Access, AccessError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), "authorities").unwrap();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
             contexts:\n- name: other\n  context: {{ cluster: x, user: y }}\n\
             - name: here\n  context: {{ cluster: c, user: u, namespace: shop }}\n\
             clusters:\n- name: c\n  cluster: {{ {cluster} }}\nusers:\n- name: u\n  user: {{ {user} }}\n"
        );
        std::fs::write(dir.path().join("kubeconfig"), text).unwrap();
        Access::from_kubeconfig(&dir.path().join("kubeconfig"))
    }

    const CLUSTER: &str = "server: 'https://[::1]:6443/prefix/', certificate-authority: ca.pem";

    #[test]
    fn a_kubeconfig_is_read_as_its_current_context_says_with_files_beside_it() {
        let access = access(CLUSTER, "token: secret").unwrap();
        assert_eq!((access.authority.as_str(), access.prefix.as_str()), ("[::1]:6443", "/prefix"));
        assert_eq!((&access.authorities[..], access.namespace()), (&b"authorities"[..], "shop"));
        assert!(matches!(&access.token, Some(Token::Fixed(token)) if token == "secret"));
        assert!(!format!("{access:?}").contains("secret"));
    }

    #[test]
    fn what_is_not_safe_or_not_there_is_refused_with_a_reason() {
        let insecure = format!("{CLUSTER}, insecure-skip-tls-verify: true");
        let cases = [
            (insecure.as_str(), "token: x", "insecure-skip-tls-verify is not supported"),
            (CLUSTER, "exec: { command: aws }", "exec and auth-provider plugins are not supported"),
            (CLUSTER, "auth-provider: { name: gcp }", "exec and auth-provider plugins are not supported"),
            (CLUSTER, "username: a, password: b", "passwords are not supported"),
            (CLUSTER, "client-certificate-data: eA==", "without its key"),
            (CLUSTER, "client-certificate-data: '!', client-key-data: eA==", "not base64"),
            ("server: 'https://a'", "token: x", "names no certificate-authority"),
            ("server: 'http://a', certificate-authority: ca.pem", "token: x", "is not https"),
            ("server: 'https://a', certificate-authority: gone.pem", "token: x", "cannot read"),
        ];
        for (cluster, user, expected) in cases {
            let error = access(cluster, user).unwrap_err().to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        }
    }

    #[test]
    fn a_pod_finds_its_service_account_where_it_is_mounted() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [("ca.crt", "authorities"), ("namespace", "shop\n")] {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        assert!(Access::mounted(dir.path(), "fd00::1", "443").is_err(), "there is no token yet");
        std::fs::write(dir.path().join("token"), "t").unwrap();
        let access = Access::mounted(dir.path(), "fd00::1", "443").unwrap();
        assert_eq!((access.authority.as_str(), access.namespace()), ("[fd00::1]:443", "shop"));
    }
}
