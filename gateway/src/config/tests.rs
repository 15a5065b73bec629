//! What a configuration says, and what is said of its mistakes.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::engine::Config as EngineConfig;

/// The repository's `conf` folder.
fn conf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf")
}

fn shipped() -> Sources {
    Sources::defaults().with_file(conf().join("gateway.toml"))
}

fn sources_of(text: &str) -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, text).unwrap();
    (folder, Sources::defaults().with_file(file))
}

/// Key and text of each mistake in `text`.
fn mistakes_of(text: &str) -> Vec<(String, String)> {
    let (_folder, sources) = sources_of(text);
    let mistakes = load(&sources).unwrap_err();
    mistakes
        .iter()
        .map(|mistake| (mistake.key.clone(), mistake.text.clone()))
        .collect()
}

fn value(config: &Config, key: &str) -> (String, String) {
    let shown = config.shown.iter().find(|shown| shown.key == key).unwrap();
    (shown.value.clone(), shown.origin.clone())
}

fn raw_of(sources: &Sources) -> raw::Raw {
    let (tree, mut mistakes) = layers::merge(sources);
    let raw = raw::read(&tree, &mut mistakes);
    assert!(mistakes.is_empty(), "{mistakes}");
    raw
}

#[test]
fn the_shipped_file_equals_the_defaults() {
    assert_eq!(raw_of(&shipped()), raw::Raw::default());
    load(&shipped()).unwrap();
}

#[test]
fn the_shipped_file_is_complete_and_its_examples_are_good() {
    let text = std::fs::read_to_string(conf().join("gateway.toml")).unwrap();
    let is_example =
        |line: &&str| line.starts_with("# ") && (line.contains(" = ") || line.starts_with("# ["));
    let examples = text
        .lines()
        .filter(is_example)
        .map(|line| &line[2..])
        .filter(|line| toml::from_str::<toml::Table>(line).is_ok());
    // Keys of the file itself and of its examples, by name alone.
    let keys: BTreeSet<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .chain(examples)
        .filter_map(key)
        .collect();
    let (tree, mut mistakes) = layers::merge(
        &Sources::defaults()
            .with("tls.certificate=x")
            .with("tls.key=x")
            .with("auth.users_file=x")
            .with("server.clients_file=x")
            .with("engines.embedded.spill_dir=x")
            .with("engines.embedded.tpch.scale_factor=1"),
    );
    let everything = raw::read(&tree, &mut mistakes);
    for shown in show::shown(&everything, &tree) {
        let name = shown.key.rsplit('.').next().unwrap();
        assert!(
            keys.contains(name),
            "{} is not in conf/gateway.toml",
            shown.key
        );
    }
}

fn key(line: &str) -> Option<&str> {
    Some(line.split_once('=')?.0.trim())
}

#[test]
fn later_layers_win_key_by_key() {
    let (_folder, mut sources) = sources_of(
        "[server]\nmax_connections = 5\nlisten = \"127.0.0.1:1\"\ndrain_timeout = \"1s\"\n",
    );
    sources.environment = [
        ("SLUICE__SERVER__MAX_CONNECTIONS", "6"),
        ("SLUICE__SERVER__LISTEN", "127.0.0.1:2"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let config = load(&sources.with("server.listen=127.0.0.1:3")).unwrap();
    assert_eq!(config.server.drain_timeout.as_secs(), 1);
    assert_eq!(config.server.max_connections, 6);
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(
        value(&config, "server.listen"),
        ("\"127.0.0.1:3\"".to_owned(), "--set".to_owned())
    );
    assert_eq!(
        value(&config, "server.max_connections").1,
        "SLUICE__SERVER__MAX_CONNECTIONS"
    );
    assert!(
        value(&config, "server.drain_timeout")
            .1
            .ends_with("gateway.toml")
    );
    assert_eq!(value(&config, "auth.method").1, "default");
}

#[test]
fn set_takes_values_of_every_type_and_keeps_case() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("T.csv"), "a\n1\n").unwrap();
    let table = folder.path().join("T.csv");
    let sources = Sources::defaults()
        .with("engines.embedded.tpch.scale_factor=0.01")
        .with(format!(
            "engines.embedded.tables.MyTable={}",
            table.display()
        ))
        .with(format!(
            "engines.embedded.allow=[\"{}\"]",
            folder.path().display()
        ))
        .with("policy.max={\"arrow.compression.level\" = 9}")
        .with("settings.arrow.maxBytesPerBatch=4MiB")
        .with("log.format=json");
    let config = load(&sources).unwrap();
    let [(_, EngineConfig::Embedded(engine))] = config.engines.as_slice() else {
        panic!("one engine")
    };
    assert_eq!(
        engine.tables,
        [("MyTable".to_owned(), table.display().to_string())]
    );
    assert_eq!(engine.allow, [folder.path().display().to_string()]);
    assert_eq!(engine.tpch_scale_factor, Some(0.01));
    assert_eq!(config.default_engine, "embedded");
}

#[test]
fn an_unknown_key_is_refused_by_name_in_every_table() {
    let text = std::fs::read_to_string(conf().join("gateway.toml")).unwrap();
    let shipped: toml::Table = toml::from_str(&text).unwrap();
    let free = [
        "settings",
        "users",
        "engines",
        "engines.embedded.tables",
        "engines.embedded.store_options",
        "policy.max",
    ];
    let mut tables = vec![
        String::new(),
        "engines.embedded.tpch".to_owned(),
        "users.ann".to_owned(),
    ];
    collect_tables("", &shipped, &mut tables);
    for table in tables
        .iter()
        .filter(|table| !free.contains(&table.as_str()))
    {
        let key = if table.is_empty() {
            "wrongkey".to_owned()
        } else {
            format!("{table}.wrongkey")
        };
        let mistakes = load(&Sources::defaults().with(format!("{key}=1"))).unwrap_err();
        let mistake = mistakes.iter().find(|mistake| mistake.key == key);
        let mistake = mistake.unwrap_or_else(|| panic!("{key} is not refused: {mistakes}"));
        assert!(mistake.text.starts_with("unknown key"), "{mistake}");
        assert!(mistake.text.contains("allowed: "), "{mistake}");
    }
    // Where names are free, their values are checked instead.
    let mistakes = load(
        &Sources::defaults()
            .with("settings.wrongkey=1")
            .with("users.ann.defaults.wrongkey=1"),
    )
    .unwrap_err();
    assert!(
        mistakes.names("settings.wrongkey") && mistakes.names("users.ann.defaults.wrongkey"),
        "{mistakes}"
    );
}

fn collect_tables(prefix: &str, table: &toml::Table, all: &mut Vec<String>) {
    for (name, value) in table {
        if let toml::Value::Table(inner) = value {
            let path = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}.{name}")
            };
            collect_tables(&path, inner, all);
            all.push(path);
        }
    }
}

#[test]
fn all_mistakes_are_told_at_once_with_what_is_allowed() {
    let found = mistakes_of(
        r#"
        [server]
        listn = "127.0.0.1:1"
        listen = "localhost:8443"
        max_connections = 0
        header_timeout = "fast"
        request_body_limit = -1
        [auth]
        method = "kerberos"
        [log]
        format = "xml"
        filter = "sluice=loud"
        [settings]
        "arrow.compression.codec" = "gzip"
        [policy.max]
        "arrow.compression.zstd.level" = 99
        [engines.embedded]
        default = "yes"
        memory_limit = "1GiB"
        query_memory_limit = "2GiB"
        [engines.embedded.tables]
        gone = "no/such/file.parquet"
        "#,
    );
    for (key, text) in [
        ("server.listn", "did you mean `listen`?"),
        ("server.listen", "127.0.0.1:8443"),
        ("server.max_connections", "from 1 up"),
        ("server.header_timeout", "10s"),
        ("server.request_body_limit", "32MiB"),
        (
            "auth.method",
            "`kerberos` is not allowed; allowed: none, file",
        ),
        ("log.format", "allowed: text, json"),
        ("log.filter", "warn"),
        ("settings.arrow.compression.codec", "none, lz4, zstd, auto"),
        ("policy.max.arrow.compression.zstd.level", "-7 to 22"),
        ("engines.embedded.default", "true or false"),
        ("engines.embedded.query_memory_limit", "memory_limit"),
        ("engines.embedded.tables.gone", "file.parquet"),
    ] {
        let told = found.iter().find(|(told, _)| told == key);
        let (_, told) = told.unwrap_or_else(|| panic!("{key} is missing in {found:#?}"));
        assert!(told.contains(text), "{key}: {told}");
    }
    assert_eq!(found.len(), 13, "{found:#?}");
}

#[test]
fn what_is_planned_is_refused_as_not_in_this_version() {
    let found = mistakes_of(
        "[hive2]\nlisten = \"127.0.0.1:10009\"\n[auth]\nmethod = \"ldap\"\n\
         [engines.spark]\nkind = \"spark_connect\"\nurl = \"sc://spark.example:15002\"\n",
    );
    let keys: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        ["auth.method", "engines.spark.kind", "hive2"],
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .all(|(_, text)| text.contains("not in this version")),
        "{found:?}"
    );
}

#[test]
fn a_file_that_is_no_file_or_no_toml_is_named() {
    let mistakes = load(&Sources::defaults().with_file("/no/such/gateway.toml")).unwrap_err();
    assert!(
        mistakes.to_string().contains("/no/such/gateway.toml"),
        "{mistakes}"
    );
    let (_folder, sources) = sources_of("[server\nlisten = 1");
    let mistakes = load(&sources).unwrap_err().to_string();
    assert!(
        mistakes.contains("gateway.toml") && mistakes.contains("line 1"),
        "{mistakes}"
    );
    let mistakes = load(&Sources::defaults().with("server.listen"))
        .unwrap_err()
        .to_string();
    assert!(mistakes.contains("section.key=value"), "{mistakes}");
}

#[test]
fn off_loopback_needs_authentication_and_a_certificate() {
    let open = Sources::defaults().with("server.listen=0.0.0.0:8443");
    let mistakes = load(&open).unwrap_err();
    assert!(
        mistakes.names("server.listen") && mistakes.names("tls.certificate"),
        "{mistakes}"
    );
    let mistakes = load(&open.with("server.insecure_listen_without_auth=true")).unwrap_err();
    assert!(
        !mistakes.names("server.listen") && mistakes.names("tls.certificate"),
        "{mistakes}"
    );
}

#[test]
fn paths_are_relative_to_the_file_and_never_open_to_sql() {
    let (folder, sources) = sources_of("[auth]\nmethod = \"file\"\nusers_file = \"users.toml\"\n");
    let mistakes = load(&sources).unwrap_err();
    assert!(mistakes.names("auth.users_file"), "{mistakes}");
    let users = folder.path().join("users.toml");
    std::fs::write(
        &users,
        format!("ann = \"{}\"\n", crate::auth::hash::hash("pw").unwrap()),
    )
    .unwrap();
    let config = load(&sources).unwrap();
    let crate::auth::Config::File(auth) = config.auth else {
        panic!("a file")
    };
    assert_eq!(auth.users_file, users);
    let [(_, EngineConfig::Embedded(engine))] = config.engines.as_slice() else {
        panic!("one engine")
    };
    assert!(
        engine.own_files.contains(&users)
            && engine
                .own_files
                .contains(&folder.path().join("gateway.toml"))
    );
}

#[test]
fn settings_in_any_spelling_are_one_key_and_secrets_are_not_shown() {
    let (_folder, sources) = sources_of(
        "[settings]\n\"arrow.compression.codec\" = \"lz4\"\n\
         [engines.embedded.store_options]\naws_secret_access_key = \"hush\"\n",
    );
    let config = load(&sources.with("settings.ARROW.compression.Codec=zstd")).unwrap();
    assert_eq!(
        value(&config, "settings.arrow.compression.codec"),
        ("\"zstd\"".to_owned(), "--set".to_owned())
    );
    assert!(!Shown::table(&config.shown).contains("hush"));
    let found =
        mistakes_of("[settings]\n\"query.timeout\" = \"1s\"\nQuery = { timeout = \"2s\" }\n");
    assert_eq!(
        found,
        [(
            "settings.query.timeout".to_owned(),
            "given twice".to_owned()
        )]
    );
}

#[test]
fn several_engines_need_one_default() {
    let one = "[engines.a]\n[engines.b]\n";
    assert!(mistakes_of(one)[0].1.contains("default = true"));
    assert!(
        mistakes_of("[engines.a]\ndefault = true\n[engines.b]\ndefault = true\n")[0]
            .1
            .contains("several defaults")
    );
    let (_folder, sources) = sources_of("[engines.a]\n[engines.b]\ndefault = true\n");
    assert_eq!(load(&sources).unwrap().default_engine, "b");
    let found = mistakes_of("[engines.a]\n[settings]\n\"gateway.engine\" = \"spark\"\n");
    assert!(
        found[0]
            .1
            .contains("there is no engine `spark`; allowed: a"),
        "{found:?}"
    );
}

#[test]
fn the_examples_are_good() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    std::fs::write(at("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(at("key.pem"), key.serialize_pem()).unwrap();
    std::fs::write(
        at("users.toml"),
        format!(
            "dashboard = \"{}\"\n",
            crate::auth::hash::hash("pw").unwrap()
        ),
    )
    .unwrap();
    std::fs::create_dir_all(at("data/events")).unwrap();
    std::fs::write(at("data/lineitem.parquet"), "").unwrap();
    let mut seen = 0;
    for example in std::fs::read_dir(conf().join("examples")).unwrap() {
        let example = example.unwrap();
        let copy = at(&example.file_name().into_string().unwrap());
        std::fs::copy(example.path(), &copy).unwrap();
        load(&Sources::defaults().with_file(copy))
            .unwrap_or_else(|mistakes| panic!("{}: {mistakes}", example.path().display()));
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn deployed_variables_name_keys() {
    for file in ["compose.yaml", "sluice.service"] {
        let text = std::fs::read_to_string(conf().join("../deploy").join(file)).unwrap();
        let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
        let names: BTreeSet<_> = text
            .split(|letter| !is_name(letter))
            .filter(|name| name.starts_with("SLUICE__"))
            .collect();
        assert!(!names.is_empty(), "{file}");
        for name in names {
            let environment = vec![(name.to_owned(), "no such value".to_owned())];
            let (tree, mut mistakes) = layers::merge(&Sources {
                environment,
                ..Sources::default()
            });
            raw::read(&tree, &mut mistakes);
            assert!(
                !mistakes.to_string().contains("unknown key"),
                "{file}: {mistakes}"
            );
        }
    }
}
