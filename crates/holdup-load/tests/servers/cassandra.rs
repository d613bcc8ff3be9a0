//! Cassandra 5.0 of one node, small and without a network of its own, from the jars of Maven's central repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdup_testing::Need;

use super::certificate::Certificate;
use super::{Server, directory, free_port, program};

const VERSION: &str = "5.0.9";

/// On two CPUs that others use as well it took 54 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// What its own `jvm17-server.options` export and open, and `java.nio`, which it reads as well.
const EXPORTS: &str = "java.base/jdk.internal.misc java.base/java.lang.ref java.management.rmi/com.sun.jmx.remote.internal.rmi \
    java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.sql/java.sql jdk.unsupported/sun.misc \
    jdk.compiler/com.sun.tools.javac.file jdk.attach/sun.tools.attach";
const OPENS: &str = "java.base/java.lang.module java.base/jdk.internal.loader java.base/jdk.internal.ref \
    java.base/jdk.internal.reflect java.base/jdk.internal.math java.base/jdk.internal.module \
    java.base/jdk.internal.util.jar java.base/sun.nio.ch java.base/java.io java.base/java.lang.reflect \
    java.base/java.lang java.base/java.util java.base/java.nio jdk.management/com.sun.management.internal \
    jdk.compiler/com.sun.tools.javac";

/// What [`start`] needs: its jars are there if it could fetch them.
pub fn needs(cache: &Path) -> [Need<'static>; 3] {
    let is_here = jars_in(cache).is_dir();
    let jars = Need::Other { name: "jars of Cassandra here, and none from Maven's central repository", is_here };
    [Need::Java, if is_here { Need::Java } else { Need::Program("mvn") }, jars]
}

fn jars_in(cache: &Path) -> PathBuf {
    cache.join(format!("cassandra-{VERSION}"))
}

/// A node that listens for CQL on [`Server::port`], with a certificate both with TLS and without. Its jars are kept below
/// `cache`.
///
/// # Errors
/// Why it can't be had here: no Java 17, no Maven or no way to the repository, or what it printed last.
pub fn start(cache: &Path, certificate: Option<&Certificate>) -> Result<Server, String> {
    check_java()?;
    let jars = jars(cache)?;
    let dir = directory("cassandra");
    let (port, storage_port) = (free_port(), free_port());
    let write = |name: &str, text: String| {
        std::fs::write(dir.path().join(name), text).map_err(|error| format!("its {name} can't be written: {error}"))
    };
    let mut configuration = configuration(port, storage_port);
    if let Some(certificate) = certificate {
        let read =
            |path| std::fs::read_to_string(path).map_err(|error| format!("the certificate can't be read: {error}"));
        write("server.pem", read(&certificate.key)? + &read(&certificate.chain)?)?;
        configuration.push_str(&encryption(dir.path()));
    }
    write("cassandra.yaml", configuration)?;
    write("logback.xml", LOGGING.to_owned())?;
    let command = command(&jars, dir.path())?;
    Server::start(&command, dir, port, PATIENCE)
}

/// Later versions of Java have no security manager, which it asks for.
fn check_java() -> Result<(), String> {
    let output = Command::new("java").arg("-version").output().map_err(|_| "there is no java")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let is_fit = ["\"17.", "\"17\"", "\"11."].iter().any(|version| text.contains(version));
    if is_fit { Ok(()) } else { Err(format!("it needs Java 17, here is {}", text.lines().next().unwrap_or("none"))) }
}

/// The directory of jars, fetched if it is not there yet.
fn jars(cache: &Path) -> Result<PathBuf, String> {
    let jars = jars_in(cache);
    if jars.is_dir() {
        return Ok(jars);
    }
    program("mvn", &[]).ok_or("there is no mvn to fetch it with")?;
    let project = directory("maven");
    std::fs::write(project.path().join("pom.xml"), PROJECT.replace("VERSION", VERSION))
        .map_err(|error| format!("no pom.xml can be written: {error}"))?;
    let output = Command::new("mvn")
        .args(["--batch-mode", "--quiet", "dependency:copy-dependencies", "-DoutputDirectory=jars"])
        .current_dir(project.path())
        .output()
        .map_err(|error| format!("mvn can't be run: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        return Err(format!("mvn can't fetch it: {}", text.lines().next().unwrap_or("it says nothing")));
    }
    // Copied beside its place and renamed, so that a directory of this name is always whole.
    let partial = cache.join(format!("cassandra-{VERSION}.{}", std::process::id()));
    let keep = || -> std::io::Result<()> {
        std::fs::create_dir_all(&partial)?;
        for jar in std::fs::read_dir(project.path().join("jars"))? {
            let jar = jar?;
            std::fs::copy(jar.path(), partial.join(jar.file_name()))?;
        }
        std::fs::rename(&partial, &jars)
    };
    match keep() {
        Ok(()) => Ok(jars),
        // Another test was faster.
        Err(_) if jars.is_dir() => Ok(jars),
        Err(error) => Err(format!("its jars can't be kept in {}: {error}", cache.display())),
    }
}

fn command(jars: &Path, dir: &Path) -> Result<Vec<String>, String> {
    let agent = std::fs::read_dir(jars)
        .map_err(|error| format!("{} can't be read: {error}", jars.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jamm-")))
        .ok_or_else(|| format!("{} holds no jamm: remove it, so that it is fetched again", jars.display()))?;
    let dir = dir.display();
    let mut command: Vec<String> = "java -Xms256m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
        -XX:MaxDirectMemorySize=128m -Xss512k -Djdk.attach.allowAttachSelf=true \
        -Dio.netty.tryReflectionSetAccessible=true -Dcassandra.skip_wait_for_gossip_to_settle=0 \
        -Dcassandra.ring_delay_ms=0 -Dcassandra-foreground=yes"
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    command.push(format!("-javaagent:{}", agent.display()));
    command.push(format!("-Dcassandra.storagedir={dir}"));
    command.push(format!("-Dcassandra.config=file://{dir}/cassandra.yaml"));
    command.push(format!("-Dlogback.configurationFile={dir}/logback.xml"));
    command.push(format!("-Djna.tmpdir={dir}"));
    command.push(format!("-Djava.io.tmpdir={dir}"));
    for (flag, packages) in [("--add-exports", EXPORTS), ("--add-opens", OPENS)] {
        for package in packages.split_whitespace() {
            command.push(flag.to_owned());
            command.push(format!("{package}=ALL-UNNAMED"));
        }
    }
    command.push("-cp".to_owned());
    command.push(format!("{}/*", jars.display()));
    command.push("org.apache.cassandra.service.CassandraDaemon".to_owned());
    Ok(command)
}

fn configuration(port: u16, storage_port: u16) -> String {
    format!(
        "cluster_name: holdup
num_tokens: 1
initial_token: 0
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: \"127.0.0.1:{storage_port}\"
listen_address: 127.0.0.1
storage_port: {storage_port}
rpc_address: 127.0.0.1
start_native_transport: true
native_transport_port: {port}
endpoint_snitch: SimpleSnitch
authenticator: AllowAllAuthenticator
authorizer: AllowAllAuthorizer
commitlog_sync: periodic
commitlog_sync_period: 10000ms
commitlog_segment_size: 4MiB
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
disk_failure_policy: stop
commit_failure_policy: stop
"
    )
}

fn encryption(dir: &Path) -> String {
    format!(
        "client_encryption_options:
  enabled: true
  optional: true
  ssl_context_factory:
    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory
  keystore: {dir}/server.pem
",
        dir = dir.display()
    )
}

const LOGGING: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%-5level %msg%n</pattern></encoder></appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"#;

const PROJECT: &str = r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>holdup</groupId>
  <artifactId>cassandra</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>VERSION</version>
    </dependency>
  </dependencies>
</project>
"#;
