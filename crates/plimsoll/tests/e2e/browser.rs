//! Drives a headless Chromium over the DevTools protocol. Commands go to Chromium's file descriptor
//! 3; responses and events come from file descriptor 4. Each message ends with a zero byte.
//!
//! Not here: the tests that use the browser.

use crate::test_support::create_new_folder;
use base64::Engine;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest time that a test waits for one step in a page, on any machine.
const PAGE_STEP_WAIT_MAX: Duration = Duration::from_secs(90);

/// A browser with one page. Dropping this value ends the browser.
pub struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    last_id: u64,
    /// Exceptions of scripts, and errors on the console.
    pub page_errors: Vec<String>,
    /// URLs of requests to other origins than the tested pages.
    pub foreign_urls: Vec<String>,
    origin: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell has replaced itself by the browser, so the child process is the browser.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts a browser. Requests to other origins than `origin` are recorded.
    pub fn start(origin: &str) -> Browser {
        let profile = create_new_folder("browser-pipe");
        let flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--remote-debugging-pipe",
            "--hide-scrollbars",
        ];
        let mut child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium is needed for the end-to-end tests (apt-get install chromium)");
        let commands = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                if let Ok(message) = serde_json::from_slice::<Value>(&message)
                    && sender.send(message).is_err()
                {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            commands,
            messages,
            session: String::new(),
            last_id: 0,
            page_errors: Vec::new(),
            foreign_urls: Vec::new(),
            origin: origin.to_owned(),
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": page, "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and returns its result. Panics on an error.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.send_command(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a command and returns its result, or the browser's error.
    fn send_command(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            command["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).expect("the browser is there");
        let until = Instant::now() + PAGE_STEP_WAIT_MAX;
        loop {
            let message = self.next(until).unwrap_or_else(|| panic!("{method}: no answer"));
            if message["id"] == id {
                return match &message["error"] {
                    Value::Null => Ok(message["result"].clone()),
                    error => Err(error.to_string()),
                };
            }
        }
    }

    /// Returns the next message, waiting at most until `until`. Events are recorded.
    fn next(&mut self, until: Instant) -> Option<Value> {
        let message = match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => panic!("the browser ended by itself"),
        };
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.page_errors.push(parameters["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.page_errors.push(parameters["entry"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with(&self.origin) && !url.starts_with("data:") && !url.starts_with("about:") {
                    self.foreign_urls.push(url.to_owned());
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// Opens a URL and waits until the page has loaded.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        self.wait("the page", "document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Evaluates an expression in the page and returns its value.
    pub fn evaluate_in_page(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true. While the page is changing, the expression has no result,
    /// so it is evaluated again.
    pub fn wait(&mut self, what: &str, expression: &str) {
        let until = Instant::now() + PAGE_STEP_WAIT_MAX;
        loop {
            let parameters = json!({ "expression": expression, "returnByValue": true });
            if self.send_command("Runtime.evaluate", parameters).is_ok_and(|it| it["result"]["value"] == true) {
                return;
            }
            assert!(
                Instant::now() < until,
                "{what}: waited too long; {}",
                self.evaluate_in_page("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Clicks the element that a selector finds, at its position on the screen.
    pub fn click(&mut self, selector: &str) {
        let place = self.evaluate_in_page(&format!(
            "(() => {{ const it = document.querySelector({selector:?}); if (!it) return null; \
             it.scrollIntoView({{ block: 'center' }}); const box = it.getBoundingClientRect(); \
             return [box.left + box.width / 2, box.top + box.height / 2, box.width * box.height]; }})()"
        ));
        let number = |at: usize| place[at].as_f64().unwrap_or_else(|| panic!("no {selector}"));
        assert!(number(2) > 0.0, "{selector} is not seen");
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": number(0), "y": number(1), "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Types a text into a field.
    pub fn fill(&mut self, selector: &str, text: &str) {
        self.evaluate_in_page(&format!(
            "document.querySelector({selector:?}).focus(); document.querySelector({selector:?}).value = ''"
        ));
        self.call("Input.insertText", json!({ "text": text }));
        assert_eq!(self.evaluate_in_page(&format!("document.querySelector({selector:?}).value")), *text, "{selector}");
    }

    /// Sets the width of the window, and whether the user prefers dark pages.
    pub fn set_window_and_theme(&mut self, width: u32, is_dark: bool) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if is_dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Saves a picture of the whole page, with limited height.
    pub fn save_screenshot(&mut self, path: &Path) {
        let size = self.evaluate_in_page(
            "[document.documentElement.clientWidth, Math.min(document.documentElement.scrollHeight, 4000)]",
        );
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let shot = self.call("Page.captureScreenshot", json!({ "clip": clip, "captureBeyondViewport": true }));
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().expect("text"));
        std::fs::write(path, bytes.expect("base64")).expect("written");
    }
}
