//! Where the source is: the same addresses that name the database of facts, for the driver of the stream.

use std::path::PathBuf;

use mysql_async::{ClientIdentity, Conn, DriverError, Opts, OptsBuilder, SslOpts, UrlError};
use url::Url;

use super::{Connection, failed, in_time};
use crate::{
    Error, Result,
    limits::{RELAY_CONNECT_TIME_MAX, RELAY_PACKET_BYTES_MAX},
};

/// The address of the source, parsed once.
#[derive(Clone)]
pub(in crate::relay) struct Address {
    opts: Opts,
    /// How to connect where the server offers no TLS, if that is allowed.
    plain: Option<Opts>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may hold a password.
        f.debug_tuple("Address").field(&self.opts.ip_or_hostname()).field(&self.opts.tcp_port()).finish()
    }
}

/// What an address says of TLS. Names and meanings are those of MySQL's own clients.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tls {
    mode: Option<String>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Tls {
    /// Takes a parameter; `false` if it is another's.
    fn take(&mut self, name: &str, value: &str) -> bool {
        match name {
            "ssl-mode" | "sslmode" => self.mode = Some(value.to_ascii_uppercase().replace('-', "_")),
            "ssl-ca" | "sslca" => self.ca = Some(value.into()),
            "ssl-cert" | "sslcert" => self.cert = Some(value.into()),
            "ssl-key" | "sslkey" => self.key = Some(value.into()),
            _ => return false,
        }
        true
    }

    /// What the driver is to do, and whether it may do without; without a mode TLS is used where the server offers
    /// it, and to the same machine not at all, as for the database of facts.
    fn options(self, is_near: bool) -> Result<(Option<SslOpts>, bool)> {
        let default = if is_near { "DISABLED" } else { "PREFERRED" };
        let mode = self.mode.as_deref().unwrap_or(default);
        let (is_chain_checked, is_host_checked, is_optional) = match mode {
            "DISABLED" => return Ok((None, false)),
            "PREFERRED" => (false, false, true),
            "REQUIRED" => (false, false, false),
            "VERIFY_CA" => (true, false, false),
            "VERIFY_IDENTITY" => (true, true, false),
            _ => return Err(refused("ssl-mode", mode)),
        };
        let identity = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some(ClientIdentity::new(cert.into(), key.into())),
            (None, None) => None,
            (Some(_), None) => return Err(refused("ssl-cert", "without ssl-key")),
            (None, Some(_)) => return Err(refused("ssl-key", "without ssl-cert")),
        };
        let options = SslOpts::default()
            // Who names a certificate means that one: with the public roots beside it, and no look at the host,
            // everybody with a certificate of his own would do.
            .with_disable_built_in_roots(self.ca.is_some())
            .with_root_certs(self.ca.into_iter().map(Into::into).collect())
            .with_client_identity(identity)
            .with_danger_accept_invalid_certs(!is_chain_checked)
            .with_danger_skip_domain_validation(!is_host_checked);
        Ok((Some(options), is_optional))
    }
}

fn refused(name: &str, value: &str) -> Error {
    unreadable(UrlError::InvalidParamValue { param: name.to_owned(), value: value.to_owned() })
}

fn unreadable(error: UrlError) -> Error {
    Error::Source { doing: "reading the address of the relay's source", source: mysql_async::Error::Url(error) }
}

impl Address {
    /// Reads `mysql://user:password@host:3306/database` (or `mariadb://`), with `?ssl-mode=VERIFY_IDENTITY`,
    /// `ssl-ca=FILE`, `ssl-cert=FILE` and `ssl-key=FILE` as needed, and the driver's own parameters.
    pub(in crate::relay) fn parse(text: &str) -> Result<Self> {
        let text = text.strip_prefix("mariadb://").map_or_else(|| text.to_owned(), |rest| format!("mysql://{rest}"));
        let mut url = Url::parse(&text).map_err(|error| unreadable(error.into()))?;
        let mut tls = Tls::default();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let others: Vec<_> = pairs.into_iter().filter(|(name, value)| !tls.take(name, value)).collect();
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(others);
        }
        let opts = Opts::from_url(url.as_str()).map_err(unreadable)?;
        let is_near = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&opts.ip_or_hostname());
        // What the driver's own parameters say of TLS holds, unless ours do.
        let (tls, is_optional) = match opts.ssl_opts() {
            Some(own) if tls == Tls::default() => (Some(own.clone()), false),
            _ => tls.options(is_near)?,
        };
        let plain = OptsBuilder::from_opts(opts)
            // A socket would outlive what a proxy or a pause of the network does to the address.
            .prefer_socket(false)
            .max_allowed_packet(Some(RELAY_PACKET_BYTES_MAX))
            .stmt_cache_size(8);
        let opts = plain.clone().ssl_opts(tls).into();
        Ok(Self { opts, plain: is_optional.then(|| plain.ssl_opts(None::<SslOpts>).into()) })
    }

    /// The database that the address names; empty if it names none.
    pub(in crate::relay) fn database(&self) -> &str {
        self.opts.db_name().unwrap_or_default()
    }

    pub(in crate::relay) async fn connect(&self) -> Result<Connection> {
        let opening = async {
            match (Conn::new(self.opts.clone()).await, &self.plain) {
                (Err(mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer)), Some(plain)) => {
                    Conn::new(plain.clone()).await
                }
                (opened, _) => opened,
            }
        };
        let opened = in_time(RELAY_CONNECT_TIME_MAX, opening).await?;
        Connection::begin(opened.map_err(failed("connecting to the relay's source"))?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether TLS is used, its chain checked and its host, and whether it may be done without.
    fn tls(url: &str) -> (bool, bool, bool, bool) {
        let address = Address::parse(url).unwrap();
        let tls = address.opts.ssl_opts();
        let is_checked = tls.is_some_and(|tls| !tls.accept_invalid_certs());
        let is_host_checked = tls.is_some_and(|tls| !tls.skip_domain_validation());
        (tls.is_some(), is_checked, is_host_checked, address.plain.is_some())
    }

    #[test]
    fn tls_is_chosen_as_for_the_database_of_facts() {
        assert_eq!(tls("mysql://me@localhost/db"), (false, false, false, false));
        assert_eq!(tls("mariadb://me@far/db"), (true, false, false, true));
        assert_eq!(tls("mysql://me@far/db?ssl-mode=disabled"), (false, false, false, false));
        assert_eq!(tls("mysql://me@far/db?ssl-mode=REQUIRED"), (true, false, false, false));
        assert_eq!(tls("mysql://me@127.0.0.1/db?ssl-mode=REQUIRED"), (true, false, false, false));
        assert_eq!(tls("mysql://me@far/db?sslmode=verify-ca&ssl-ca=a.pem"), (true, true, false, false));
        assert_eq!(tls("mysql://me@far/db?ssl-mode=VERIFY_IDENTITY"), (true, true, true, false));
        assert_eq!(tls("mysql://me@far/db?require_ssl=true"), (true, true, true, false));
    }

    #[test]
    fn files_are_those_that_the_address_names() {
        let text = "mysql://me@far/db?ssl-mode=VERIFY_CA&ssl-ca=%2Fa%20b.pem&ssl-cert=c.pem&ssl-key=k.pem";
        let address = Address::parse(text).unwrap();
        let tls = address.opts.ssl_opts().unwrap();
        assert!(tls.disable_built_in_roots(), "no other roots are believed");
        assert_eq!(tls.root_certs(), [PathBuf::from("/a b.pem").into()]);
        let identity = tls.client_identity().unwrap();
        assert_eq!(identity.cert_chain(), PathBuf::from("c.pem").into());
        assert_eq!(identity.priv_key(), PathBuf::from("k.pem").into());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "mysql://me@far/db?ssl-mode=sometimes",
            "mysql://me@far/db?ssl-cert=c.pem",
            "mysql://me@far/db?colour=green",
            "postgres://me@far/db",
            "far",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
