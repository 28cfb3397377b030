//! The settings of the object store that hosts share, checked whole: what this program does not understand, or would not
//! do as it is written, is an error.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use gatewright_engine::check::suggest;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::basics::paths::{NoCredentials, Paths};
use crate::basics::private;

/// The object store that all hosts of this installation share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Store")]
pub struct StoreSettings {
    /// The address: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX`, or `file:///FOLDER`.
    pub url: String,
    /// Options of the store, as the `object_store` library names them, such as `aws_region`; no credentials.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// A file with lines `NAME=VALUE`, of the same names, for credentials; without it the machine's own count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<PathBuf>,
}

/// Settings of a store that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreConflict {
    /// The address has another form.
    #[error("the address of the store is not of the form s3://BUCKET/PREFIX, gs://…, az://… or file:///FOLDER")]
    Address,
    /// There is a kind of store that is not known.
    #[error("there is no kind of store {0:?}")]
    Scheme(String),
    /// There is a password, query or fragment in the address.
    #[error("the address of the store contains a user, password, query or fragment")]
    Secret,
    /// The store has no such option.
    #[error("stores of kind {1} have no option {0:?}")]
    Option(String, &'static str),
    /// A credential stands where everybody can read it.
    #[error("the option {0:?} is a credential")]
    Credential(String),
    /// The file with credentials cannot be read.
    #[error("cannot read {0:?}, which `secrets` names")]
    Read(PathBuf, #[source] io::Error),
    /// A line of that file is something else.
    #[error("cannot use {0:?}, which `secrets` names: line {1} is not of the form NAME=VALUE")]
    Line(PathBuf, usize),
}

impl StoreConflict {
    /// Returns what to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Scheme(_) => Some("write file, s3, gs or az".to_owned()),
            Self::Secret | Self::Credential(_) => {
                Some("put it into a file as NAME=VALUE, and name that in `secrets`".to_owned())
            }
            Self::Option(key, kind) => {
                let kind = Kind::all().into_iter().find(|it| it.name() == *kind)?;
                let near = suggest(&key.to_lowercase(), kind.options().iter().map(|option| option.0));
                Some(near.map_or_else(|| kind.names(), |near| format!("did you mean {near:?}?")))
            }
            Self::Read(_, error) if private::TooOpen::is(error) => Some(private::TooOpen::HINT.to_owned()),
            Self::Address | Self::Read(..) | Self::Line(..) => None,
        }
    }
}

/// The kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder that all hosts mount.
    Folder,
    /// Amazon S3, and what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}

/// An option: its name, and whether its value is a secret.
type Known = (&'static str, bool);

/// Among those that are missing here are the ones of the built-in HTTP client, which is not in use; buckets, which stand in
/// the address; `azure_use_azure_cli`, which starts a program; and the encryption with keys of the client, which is ours to do.
const S3: [Known; 25] = [
    ("aws_access_key_id", true),
    ("aws_secret_access_key", true),
    ("aws_session_token", true),
    ("aws_region", false),
    ("aws_default_region", false),
    ("aws_endpoint", false),
    ("aws_endpoint_url_s3", false),
    ("aws_endpoint_url_sts", false),
    ("aws_virtual_hosted_style_request", false),
    ("aws_s3_express", false),
    ("aws_imdsv1_fallback", false),
    ("aws_metadata_endpoint", false),
    ("aws_unsigned_payload", false),
    ("aws_checksum_algorithm", false),
    ("aws_container_credentials_relative_uri", false),
    ("aws_container_credentials_full_uri", false),
    ("aws_container_authorization_token_file", false),
    ("aws_web_identity_token_file", false),
    ("aws_role_arn", false),
    ("aws_role_session_name", false),
    ("aws_skip_signature", false),
    ("aws_conditional_put", false),
    ("aws_disable_bulk_delete", false),
    ("aws_request_payer", false),
    ("aws_allow_http", false),
];

const GCS: [Known; 7] = [
    ("google_service_account", false),
    ("google_service_account_key", true),
    ("google_base_url", false),
    ("google_application_credentials", false),
    ("google_bearer_token", true),
    ("google_skip_signature", false),
    ("google_allow_http", false),
];

const AZURE: [Known; 16] = [
    ("azure_storage_account_key", true),
    ("azure_storage_account_name", false),
    ("azure_storage_client_id", false),
    ("azure_storage_client_secret", true),
    ("azure_storage_tenant_id", false),
    ("azure_storage_authority_host", false),
    ("azure_storage_sas_key", true),
    ("azure_storage_token", true),
    ("azure_storage_use_emulator", false),
    ("azure_storage_endpoint", false),
    ("azure_msi_endpoint", false),
    ("azure_object_id", false),
    ("azure_msi_resource_id", false),
    ("azure_federated_token_file", false),
    ("azure_skip_signature", false),
    ("azure_allow_http", false),
];

impl Kind {
    fn all() -> [Self; 4] {
        [Self::Folder, Self::S3, Self::Gcs, Self::Azure]
    }

    /// Returns its name in an address.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Folder => "file",
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
        }
    }

    fn options(self) -> &'static [Known] {
        match self {
            Self::Folder => &[],
            Self::S3 => &S3,
            Self::Gcs => &GCS,
            Self::Azure => &AZURE,
        }
    }

    fn names(self) -> String {
        match self.options() {
            [] => "it has no options".to_owned(),
            options => format!("there are: {}", options.iter().map(|option| option.0).collect::<Vec<_>>().join(", ")),
        }
    }

    /// Returns the option that a name stands for: there are several for some.
    fn option(self, key: &str) -> Option<Known> {
        let name = |key: &str| match self {
            Self::Folder => None,
            Self::S3 => key.parse::<AmazonS3ConfigKey>().ok().map(|key| key.as_ref().to_owned()),
            Self::Gcs => key.parse::<GoogleConfigKey>().ok().map(|key| key.as_ref().to_owned()),
            Self::Azure => key.parse::<AzureConfigKey>().ok().map(|key| key.as_ref().to_owned()),
        };
        let meant = name(&key.to_ascii_lowercase())?;
        self.options().iter().find(|option| name(option.0).as_deref() == Some(&meant)).copied()
    }
}

/// The address of a store, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) kind: Kind,
    /// The folder, or the path below the bucket.
    pub(super) path: String,
}

impl StoreSettings {
    /// Makes paths absolute.
    pub fn resolve(&mut self, paths: &Paths) -> Result<(), NoCredentials> {
        if let Some(file) = &mut self.secrets {
            *file = paths.resolve(file)?;
        }
        Ok(())
    }

    /// Tells what is wrong or missing, without reading the file with credentials.
    pub fn check(&self) -> Result<(), StoreConflict> {
        let address = self.address()?;
        for key in self.options.keys() {
            let (_, is_secret) = known(address.kind, key)?;
            if is_secret {
                return Err(StoreConflict::Credential(key.clone()));
            }
        }
        Ok(())
    }

    /// Takes the address apart.
    pub(super) fn address(&self) -> Result<Address, StoreConflict> {
        let (scheme, rest) = self.url.split_once("://").ok_or(StoreConflict::Address)?;
        let kind = Kind::all().into_iter().find(|kind| kind.name() == scheme);
        let kind = kind.ok_or_else(|| StoreConflict::Scheme(scheme.chars().take(20).collect()))?;
        if kind == Kind::Folder {
            let is_folder = rest.starts_with('/') && !rest.contains('\0');
            return if is_folder { Ok(Address { kind, path: rest.to_owned() }) } else { Err(StoreConflict::Address) };
        }
        if rest.contains(['@', '?', '#', '%']) {
            return Err(StoreConflict::Secret);
        }
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.strip_suffix('/').unwrap_or(path);
        let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.bytes().all(is_plain);
        let is_path = path.is_empty() || path.split('/').all(is_part);
        if !is_part(bucket) || !is_path {
            return Err(StoreConflict::Address);
        }
        Ok(Address { kind, path: path.to_owned() })
    }

    /// Returns all options, those of the file with credentials included.
    pub(super) fn all_options(&self) -> Result<BTreeMap<String, String>, StoreConflict> {
        self.check()?;
        let mut options = self.options.clone();
        if let Some(file) = &self.secrets {
            let text = private::read_to_string(file).map_err(|error| StoreConflict::Read(file.clone(), error))?;
            for (index, line) in text.lines().map(str::trim).enumerate() {
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let form = || StoreConflict::Line(file.clone(), index + 1);
                let (key, value) = line.split_once('=').ok_or_else(form)?;
                let key = key.trim();
                // What is no word may be a part of a secret, and is not repeated.
                if key.is_empty()
                    || !key
                        .bytes()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_uppercase() || c == b'_' || c.is_ascii_digit())
                {
                    return Err(form());
                }
                known(self.address()?.kind, key)?;
                options.insert(key.to_owned(), value.trim().to_owned());
            }
        }
        Ok(options.into_iter().map(|(key, value)| (key.to_ascii_lowercase(), value)).collect())
    }
}

fn known(kind: Kind, key: &str) -> Result<Known, StoreConflict> {
    kind.option(key).ok_or_else(|| StoreConflict::Option(key.to_owned(), kind.name()))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, options: &[(&str, &str)]) -> StoreSettings {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        StoreSettings { url: url.to_owned(), options, secrets: None }
    }

    fn check(url: &str, options: &[(&str, &str)], expected: &str) {
        let error = settings(url, options).check().expect_err("something is wrong");
        let hint = error.hint().unwrap_or_default();
        assert_eq!(format!("{error}; {hint}"), expected);
    }

    #[test]
    fn addresses_are_taken_apart() {
        let check = |url: &str, kind: Kind, path: &str| {
            let address = settings(url, &[]).address().expect("it is an address");
            assert_eq!(address, Address { kind, path: path.to_owned() }, "{url}");
        };
        check("file:///srv/store", Kind::Folder, "/srv/store");
        check("s3://bucket", Kind::S3, "");
        check("s3://bucket/", Kind::S3, "");
        check("gs://bucket/a/b/", Kind::Gcs, "a/b");
        check("az://container/fleet", Kind::Azure, "fleet");
        for url in ["", "s3:/", "s3://", "s3:///a", "s3://b//a", "s3://b/../a", "file://host/a", "file:a", "s3://b/a b"]
        {
            assert!(matches!(settings(url, &[]).check(), Err(StoreConflict::Address)), "{url}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_do() {
        let form = "put it into a file as NAME=VALUE, and name that in `secrets`";
        check("ftp://a/b", &[], "there is no kind of store \"ftp\"; write file, s3, gs or az");
        for url in ["s3://me:pw@bucket", "az://c/p?sv=1&sig=abc", "gs://b/p#x"] {
            check(url, &[], &format!("the address of the store contains a user, password, query or fragment; {form}"));
        }
        check(
            "s3://b",
            &[("aws_regoin", "x")],
            "stores of kind s3 have no option \"aws_regoin\"; did you mean \"aws_region\"?",
        );
        check(
            "file:///srv",
            &[("aws_region", "x")],
            "stores of kind file have no option \"aws_region\"; it has no options",
        );
        let key = ("AWS_Secret_Access_Key", "hunter2");
        check("s3://b", &[key], &format!("the option \"AWS_Secret_Access_Key\" is a credential; {form}"));
        for unwanted in ["proxy_url", "azure_use_azure_cli", "azure_container_name", "timeout"] {
            let error = settings("az://c", &[(unwanted, "x")]).check().expect_err("it is not understood");
            assert!(matches!(error, StoreConflict::Option(..)), "{unwanted}");
        }
    }

    #[test]
    fn every_option_is_one_of_the_library_and_has_other_names() {
        for kind in Kind::all() {
            for option in kind.options() {
                assert_eq!(kind.option(option.0), Some(*option), "{}", option.0);
            }
        }
        assert_eq!(Kind::S3.option("region"), Some(("aws_region", false)));
        assert_eq!(Kind::S3.option("allow_http"), Some(("aws_allow_http", false)));
        assert_eq!(Kind::Azure.option("sas_token"), Some(("azure_storage_sas_key", true)));
    }

    #[test]
    fn credentials_come_from_a_private_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("secrets");
        let read = |text: &str| {
            private::tests::write(&file, text).expect("a test may");
            let settings = settings("s3://b", &[("aws_region", "here")]);
            StoreSettings { secrets: Some(file.clone()), ..settings }.all_options()
        };
        let options =
            read("# of the store\n\nAWS_ACCESS_KEY_ID = me\naws_secret_access_key=a=b==\n").expect("it is whole");
        let expected = [("aws_access_key_id", "me"), ("aws_region", "here"), ("aws_secret_access_key", "a=b==")];
        assert!(options.iter().map(|(key, value)| (key.as_str(), value.as_str())).eq(expected));
        for (text, line) in [("hunter2\n", 1), ("\nhunter2+hunter/=x", 2)] {
            let error = read(text).expect_err("it is no option").to_string();
            assert!(error.contains(&format!("line {line} ")) && !error.contains("hunter2"), "{error}");
        }
        assert!(read("aws_secret=a").is_err_and(|error| error.to_string().contains("no option \"aws_secret\"")));
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("a test may");
        let settings = StoreSettings { secrets: Some(file.clone()), ..settings("s3://b", &[]) };
        let error = settings.all_options().expect_err("others can read it");
        assert!(error.hint().is_some_and(|hint| hint.contains("chmod 600")), "{error}");
    }
}
