//! What `~/.aws/credentials` and `~/.aws/config` say of a profile: the store's library reads the environment alone.

use std::collections::HashMap;
use std::path::PathBuf;

/// The values of a profile, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Profile(HashMap<String, String>);

impl Profile {
    /// The one that `AWS_PROFILE` names, else `default`.
    pub(crate) fn current() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".into());
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(PathBuf::from);
        let text = |variable_name: &str, file: &str| {
            let path = variable(variable_name).map(PathBuf::from);
            path.or_else(|| Some(home.as_ref()?.join(".aws").join(file)))
                .and_then(|path| std::fs::read_to_string(path).ok())
        };
        let config = text("AWS_CONFIG_FILE", "config").unwrap_or_default();
        let credentials = text("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
        Self::parse(&name, &config, &credentials)
    }

    fn parse(name: &str, config: &str, credentials: &str) -> Self {
        let mut values =
            section(config, |header| header == format!("profile {name}") || name == "default" && header == name);
        values.extend(section(credentials, |header| header == name));
        Self(values)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// How it gets credentials, where those are not in the files themselves.
    pub(crate) fn other_source(&self) -> Option<&'static str> {
        let sources = ["sso_session", "sso_start_url", "role_arn", "credential_process"];
        sources.into_iter().find(|source| self.0.contains_key(*source))
    }
}

/// The values below the header that `is_it`; indented lines belong to the value before them and are left out.
fn section(text: &str, is_it: impl Fn(&str) -> bool) -> HashMap<String, String> {
    let (mut values, mut is_in) = (HashMap::new(), false);
    for line in text.lines().filter(|line| !line.starts_with(['#', ';', ' ', '\t'])) {
        if let Some(header) = line.trim().strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_in = is_it(&header.split_whitespace().collect::<Vec<_>>().join(" "));
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_in) {
            values.insert(key.trim().to_lowercase(), value.trim().to_string());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_section_of_two_files() {
        let config = "[default]\nregion = eu-west-1\n[profile  lab]\n# where\nregion=us-east-2\ns3 =\n  endpoint_url = x\nendpoint_url = http://h:1\n";
        let credentials = "[lab]\naws_access_key_id = A\naws_secret_access_key = B=\n[other]\naws_access_key_id = C\n";
        let lab = Profile::parse("lab", config, credentials);
        assert_eq!((lab.get("region"), lab.get("aws_secret_access_key")), (Some("us-east-2"), Some("B=")));
        assert_eq!((lab.get("endpoint_url"), lab.get("aws_access_key_id")), (Some("http://h:1"), Some("A")));
        assert_eq!(Profile::parse("default", config, credentials).get("region"), Some("eu-west-1"));
        assert_eq!(Profile::parse("none", config, credentials), Profile::default());
        assert_eq!(Profile::parse("default", "[default]\nrole_arn = r", "").other_source(), Some("role_arn"));
    }
}
