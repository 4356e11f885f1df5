//! Tests which requests are admitted, and which are refused.

use crate::client::{Client, refusal};
use crate::traces::{Folder, SMALL};
use gapscope_view::Options;
use std::net::TcpListener;

#[test]
fn the_page_and_its_files_are_served_under_the_token() {
    let (_folder, client) = Client::small();
    let page = client.path(&client.root);
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-type: text/html"));
    assert!(page.text().contains("./app.js"));
    for (file, kind) in [
        ("app.js", "text/javascript"),
        ("app.css", "text/css"),
        ("index.html", "text/html"),
    ] {
        let response = client.path(&format!("{}{file}", client.root));
        assert_eq!(response.status, 200, "{file}");
        assert!(response.head.contains(kind), "{file}: {}", response.head);
    }
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let (_folder, client) = Client::small();
    for path in [
        client.root.clone(),
        format!("{}api/overview", client.root),
        "/".to_owned(),
    ] {
        let head = client.path(&path).head;
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'",
            "frame-ancestors 'none'",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(head.contains(header), "{path}: {header} is not in {head}");
        }
        assert!(!head.contains("unsafe-inline") && !head.contains("unsafe-eval"));
    }
}

#[test]
fn without_the_right_token_nothing_is_there() {
    let (_folder, client) = Client::small();
    let token = client.root.trim_matches('/');
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let mut almost = token.to_owned();
    let last = if almost.pop() == Some('0') { '1' } else { '0' };
    almost.push(last);
    let wrong = [
        "/".to_owned(),
        "/index.html".to_owned(),
        "/api/overview".to_owned(),
        "//api/overview".to_owned(),
        format!("/{token}"),
        format!("/{almost}/api/overview"),
        format!("/{}/api/overview", token.to_uppercase()),
        format!("/x/{token}/api/overview"),
        format!("/{}/api/overview", &token[..31]),
    ];
    let mut bodies = Vec::new();
    for path in wrong
        .iter()
        .filter(|path| !path.contains(&format!("/{token}/api")) || path.starts_with("/x/"))
    {
        let response = client.path(path);
        assert_eq!(response.status, 404, "{path}");
        bodies.push(response.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "no answer says more than another");
    let other = Client::new(&[_folder.trace("other", SMALL)]);
    assert_ne!(other.root, client.root);
}

#[test]
fn a_foreign_host_is_refused() {
    let (_folder, client) = Client::small();
    let path = format!("{}api/overview", client.root);
    let port = client.host.rsplit_once(':').unwrap().1;
    let with = |hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| format!("Host: {host}\r\n"));
        let hosts: String = hosts.collect();
        let request = format!("GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
        client.raw(&request).status
    };
    assert_eq!(with(&[&client.host]), 200);
    assert_eq!(with(&[&format!("localhost:{port}")]), 200);
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1.evil.example:{port}"),
        format!("127.0.0.1:{port}.evil.example"),
        String::new(),
    ] {
        let status = with(&[&host]);
        assert!(status == 403 || status == 400, "{host}: {status}");
    }
    let two = with(&[&client.host, "evil.example"]);
    assert!(two == 403 || two == 400);
    assert!([403, 400].contains(&with(&[])));
    // A path that names another host does not change the server that is meant.
    let absolute = client.raw(&format!(
        "GET http://evil.example{path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(absolute.status, 403);
}

#[test]
fn other_pages_may_not_read() {
    let (_folder, client) = Client::small();
    let origin = "Origin: https://evil.example\r\n";
    let request = |method: &str| client.send(method, "overview", origin, "");
    assert!(!request("GET").head.contains("access-control"));
    for method in ["OPTIONS", "POST", "PUT", "DELETE", "HEAD", "PATCH"] {
        let response = request(method);
        assert_eq!(response.status, 405, "{method}");
        assert!(!response.head.contains("access-control"));
    }
}

#[test]
fn notes_alone_are_written_and_by_our_page_alone() {
    let (folder, client) = Client::small();
    let put = |key: &str, headers: &str| {
        let body = r#"{"revision": "", "notes": [{"from_ns": 5, "to_ns": null, "text": "here"}]}"#;
        client.send("PUT", key, headers, body).status
    };
    let json = "Content-Type: application/json\r\n";
    let foreign = format!("{json}Origin: https://evil.example\r\n");
    let text = "Content-Type: text/plain\r\n";
    for (key, headers) in [
        ("t/0/notes", ""),
        ("t/0/notes", text),
        ("t/0/notes", &foreign),
        ("overview", json),
        ("t/0/findings", json),
    ] {
        assert_eq!(put(key, headers), 405, "{key} {headers}");
    }
    let own = format!("{json}Origin: http://{}\r\n", client.host);
    assert_eq!(put("t/1/notes", &own), 404);
    assert_eq!(put("t/0/notes", &own), 200);
    // The notes have another revision by now.
    assert_eq!(put("t/0/notes", json), 409);
    assert_eq!(client.json("t/0/notes")["notes"][0]["text"], "here");
    let files = walk(folder.path());
    let notes = files.iter().filter(|name| name.contains("notes"));
    assert_eq!(notes.count(), 1);
}

/// Returns the names of all files below a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let inside = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => walk(&path),
        path => vec![path.display().to_string()],
    };
    entries.flat_map(inside).collect()
}

#[test]
fn no_path_leads_out() {
    let (folder, client) = Client::small();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    for path in [
        "../secret.txt",
        "..%2fsecret.txt",
        "%2e%2e/secret.txt",
        "api/../../secret.txt",
        "api/t/0/../../../secret.txt",
        "./../secret.txt",
        "....//secret.txt",
        "/etc/passwd",
        "api//etc/passwd",
        "app.js/../../secret.txt",
        "api/t/0/source/../../secret.txt",
        "api/t/0/rows/../trace.json/0",
        "api/t/0/track/..%2f..%2ftrace.json",
        "api/t/00000000000000000000000000000000000000009/strings",
        "api/t/-1/strings",
        "api/t/1/strings",
        "trace.json",
        "\\..\\secret.txt",
    ] {
        let response = client.path(&format!("{}{path}", client.root));
        let status = response.status;
        assert!(status == 404 || status == 400, "{path}: {status}");
        assert!(!response.text().contains("secret"), "{path}");
    }
}

#[test]
fn it_listens_on_loopback_alone() {
    let (_folder, client) = Client::small();
    assert!(client.url().starts_with("http://127.0.0.1:"));
    let port: u16 = client.host.rsplit_once(':').unwrap().1.parse().unwrap();
    // Another of this machine's addresses is free at this port, so the server does not listen on all of them.
    drop(TcpListener::bind(("127.0.0.2", port)).unwrap());
}

#[test]
fn a_port_that_is_taken_is_reported() {
    let folder = Folder::new();
    let trace = folder.trace("small", SMALL);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = Some(taken.local_addr().unwrap().port());
    let options = Options {
        port,
        ..Options::default()
    };
    let text = refusal(&[trace], options);
    for part in ["another program has it", "--port"] {
        assert!(text.contains(part), "{text}");
    }
}
