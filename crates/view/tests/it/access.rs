//! Tests which requests are admitted, and which are refused.

use crate::client::Client;
use crate::traces::{Folder, SMALL};
use gapscope_view::{Options, Server};
use std::net::TcpListener;

fn client() -> (Folder, Client) {
    let folder = Folder::new();
    let trace = folder.trace("small", SMALL);
    let client = Client::of(&[trace]);
    (folder, client)
}

#[test]
fn the_page_and_its_files_are_served_under_the_token() {
    let (_folder, client) = client();
    let page = client.path(&client.root);
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-type: text/html"));
    assert!(String::from_utf8_lossy(&page.body).contains("./app.js"));
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
    let (_folder, client) = client();
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
    let (_folder, client) = client();
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
    let other = Client::of(&[_folder.trace("other", SMALL)]);
    assert_ne!(other.root, client.root);
}

#[test]
fn a_foreign_host_is_refused() {
    let (_folder, client) = client();
    let path = format!("{}api/overview", client.root);
    let port = client.host.rsplit_once(':').unwrap().1;
    let with = |hosts: &[&str]| {
        let hosts: String = hosts
            .iter()
            .map(|host| format!("Host: {host}\r\n"))
            .collect();
        client
            .raw(&format!(
                "GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"
            ))
            .status
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
    let (_folder, client) = client();
    let request = |method: &str| {
        client.raw(&format!(
            "{method} {}api/overview HTTP/1.1\r\nHost: {}\r\nOrigin: https://evil.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            client.root, client.host
        ))
    };
    assert!(!request("GET").head.contains("access-control"));
    for method in ["OPTIONS", "POST", "PUT", "DELETE", "HEAD", "PATCH"] {
        let response = request(method);
        assert_eq!(response.status, 405, "{method}");
        assert!(!response.head.contains("access-control"));
    }
}

#[test]
fn notes_alone_are_written_and_by_our_page_alone() {
    let (folder, client) = client();
    let put = |key: &str, headers: &str| {
        let body = r#"{"revision": "", "notes": [{"from_ns": 5, "to_ns": null, "text": "here"}]}"#;
        client.raw(&format!(
            "PUT {}api/{key} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            client.root,
            client.host,
            body.len()
        ))
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
        assert_eq!(put(key, headers).status, 405, "{key} {headers}");
    }
    let own = format!("{json}Origin: http://{}\r\n", client.host);
    assert_eq!(put("t/1/notes", &own).status, 404);
    assert_eq!(put("t/0/notes", &own).status, 200);
    // The notes have another revision by now.
    assert_eq!(put("t/0/notes", json).status, 409);
    assert_eq!(client.json("t/0/notes")["notes"][0]["text"], "here");
    let files = walk(folder.path());
    assert_eq!(
        files.iter().filter(|name| name.contains("notes")).count(),
        1
    );
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
    let (folder, client) = client();
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
        assert!(
            response.status == 404 || response.status == 400,
            "{path}: {}",
            response.status
        );
        assert!(
            !String::from_utf8_lossy(&response.body).contains("secret"),
            "{path}"
        );
    }
}

#[test]
fn it_listens_on_loopback_alone() {
    let (_folder, client) = client();
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
    let Err(error) = Server::open(
        &[trace],
        Options {
            port,
            ..Options::default()
        },
    ) else {
        panic!("the port is taken")
    };
    let text = error.to_string();
    assert!(
        text.contains("another program has it") && text.contains("--port"),
        "{text}"
    );
}
