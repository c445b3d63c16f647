//! The clouds: endpoints and credentials as their own programs find them.

use crate::aws_profile::Profile;
use crate::error::{Fault, StoreError};
use crate::retry;
use crate::runtime::wait;
use object_store::aws::{AmazonS3Builder, resolve_bucket_region};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore, ObjectStoreScheme, StaticCredentialProvider};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The store whose addresses begin with `base`.
///
/// # Errors
/// When nothing says who asks, or the address is none.
pub(crate) fn build(scheme: &ObjectStoreScheme, base: &str) -> io::Result<Box<dyn ObjectStore>> {
    // Another one may be chosen already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built: Result<Box<dyn ObjectStore>, object_store::Error> = match scheme {
        ObjectStoreScheme::AmazonS3 => amazon(base)?.build().map(|store| Box::new(store) as _),
        ObjectStoreScheme::GoogleCloudStorage => google(base)?.build().map(|store| Box::new(store) as _),
        ObjectStoreScheme::MicrosoftAzure => azure(base)?.build().map(|store| Box::new(store) as _),
        _ => {
            let builder = HttpBuilder::new().with_url(base).with_retry(retry::config());
            builder
                .with_client_options(ClientOptions::new().with_allow_http(true))
                .build()
                .map(|store| Box::new(store) as _)
        }
    };
    built.map_err(|error| StoreError::of(&error, base).into())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn any_variable(names: &[&str]) -> bool {
    names.iter().any(|name| variable(name).is_some())
}

fn is_plain_http(endpoint: Option<&str>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
}

fn amazon(base: &str) -> io::Result<AmazonS3Builder> {
    let profile = Profile::current();
    let mut builder = AmazonS3Builder::from_env().with_url(base).with_retry(retry::config());
    let endpoint =
        variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL")).or_else(|| variable("AWS_ENDPOINT"));
    let endpoint = endpoint.or_else(|| profile.get("endpoint_url").map(String::from));
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if is_plain_http(endpoint.as_deref()) {
        builder = builder.with_allow_http(true);
    }
    let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = region.or_else(|| profile.get("region").map(String::from));
    let bucket = base.strip_prefix("s3://").or_else(|| base.strip_prefix("s3a://")).unwrap_or_default().to_string();
    match region {
        Some(region) => builder = builder.with_region(region),
        None if endpoint.is_none() && !bucket.is_empty() => {
            // It answers with the region, also to those who may not read.
            let found = wait(async move {
                resolve_bucket_region(&bucket, &ClientOptions::new()).await.map_err(io::Error::other)
            });
            if let Ok(region) = found {
                builder = builder.with_region(region);
            }
        }
        None => {}
    }
    if any_variable(&["AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"]) {
        return Ok(builder);
    }
    if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        return Ok(match profile.get("aws_session_token") {
            Some(token) => builder.with_token(token),
            None => builder,
        });
    }
    // Of these the library knows.
    let others = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        // Without the file that goes with it, it knows nothing of `AWS_CONTAINER_CREDENTIALS_FULL_URI`.
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_METADATA_ENDPOINT",
    ];
    if any_variable(&others) || profile.other_source().is_none() && is_instance("AWS_EC2_METADATA_DISABLED") {
        return Ok(builder);
    }
    let detail = profile.other_source().map_or_else(String::new, |source| {
        format!("the profile has {source}, which is not followed; `aws configure export-credentials --format env` gives them")
    });
    Err(StoreError::new(Fault::NoCredentials, base, detail).into())
}

fn google(base: &str) -> io::Result<GoogleCloudStorageBuilder> {
    let builder = GoogleCloudStorageBuilder::from_env().with_url(base).with_retry(retry::config());
    if let Some(emulator) = variable("STORAGE_EMULATOR_HOST") {
        let emulator = if emulator.contains("://") { emulator } else { format!("http://{emulator}") };
        let builder = builder.with_config(GoogleConfigKey::BaseUrl, emulator.trim_end_matches('/'));
        // That nobody signs is not heard where something is written.
        let nobody = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        let builder = builder.with_credentials(Arc::new(nobody));
        return Ok(builder.with_client_options(ClientOptions::new().with_allow_http(true)));
    }
    let stated = [
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_BEARER_TOKEN",
        "GOOGLE_SKIP_SIGNATURE",
        "GCE_METADATA_HOST",
        "GCE_METADATA_ROOT",
        "GCE_METADATA_IP",
    ];
    let of_user = || {
        let folder = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config/gcloud"));
        folder.is_some_and(|folder| folder.join("application_default_credentials.json").is_file())
    };
    if any_variable(&stated) || of_user() || is_instance("NO_GCE_CHECK") {
        return Ok(builder);
    }
    Err(StoreError::new(Fault::NoCredentials, base, "").into())
}

fn azure(base: &str) -> io::Result<MicrosoftAzureBuilder> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_url(base).with_retry(retry::config());
    if is_plain_http(variable("AZURE_STORAGE_ENDPOINT").or_else(|| variable("AZURE_ENDPOINT")).as_deref()) {
        builder = builder.with_allow_http(true);
    }
    if let Some(text) = variable("AZURE_STORAGE_CONNECTION_STRING") {
        for (key, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
            builder = match key {
                "AccountName" => builder.with_account(value),
                "AccountKey" => builder.with_access_key(value),
                "SharedAccessSignature" => builder.with_config(AzureConfigKey::SasKey, value),
                "BlobEndpoint" => builder.with_endpoint(value.into()).with_allow_http(is_plain_http(Some(value))),
                _ => builder,
            };
        }
        return Ok(builder);
    }
    let stated = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_MASTER_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_IDENTITY_ENDPOINT",
        "IDENTITY_ENDPOINT",
        "AZURE_USE_AZURE_CLI",
        "AZURE_SKIP_SIGNATURE",
        "AZURE_STORAGE_USE_EMULATOR",
    ];
    if any_variable(&stated) || is_instance("AZURE_NO_INSTANCE") {
        return Ok(builder);
    }
    Err(StoreError::new(Fault::NoCredentials, base, "").into())
}

/// Whether this is a machine of a cloud, which knows who it is: its address for that answers, the same in all clouds.
/// `denied_by` is a variable that says it does not.
fn is_instance(denied_by: &str) -> bool {
    let address = SocketAddr::from(([169, 254, 169, 254], 80));
    variable(denied_by).is_none_or(|value| value == "false")
        && TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}
