//! The web server ([`serve_pages`]): its routes, and the headers that all its responses have.
//!
//! Not here: access control (`guard`), and the content of responses (`views`, `api`, `metrics`).

use crate::api;
use crate::guard::{AccessRules, security_headers};
use crate::jobs::StartedStudies;
use crate::layout::{APP_SCRIPT, app_style, problem_page};
use crate::mark_form;
use crate::metrics;
use crate::problem::Problem;
use crate::query::{Query, percent_encode};
use crate::state::{Renderers, WebState};
use crate::tls::WebTls;
use crate::views;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use plimsoll_analysis::history::{SeriesOrder, group_comparable_runs};
use plimsoll_history::{RunFilter, Store};
use plimsoll_model::failure::Failure;
use plimsoll_report::chart::PICTURE_SUFFIX;
use plimsoll_report::{flame, page};
use serde_json::Value;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The maximum size of a request body, in bytes.
const BODY_BYTES_MAX: usize = 192 << 10;
/// The maximum number of threads that read run files. The number of threads is low, because a load
/// that runs on this machine needs the CPU cores.
const READER_THREADS_MAX: usize = 2;
/// The maximum size in bytes of a run file that users can download.
const DOWNLOAD_BYTES_MAX: u64 = 256 << 20;

/// The settings of the server.
pub struct WebSettings {
    /// The folder with the run files.
    pub store: PathBuf,
    /// The path of the plimsoll executable, which the server starts for each study.
    pub program: PathBuf,
    /// The rules that decide which requests are allowed.
    pub access: AccessRules,
    /// The functions that render the contents of a run file.
    pub renderers: Renderers,
    /// The TLS certificate; `None` if the server uses plain HTTP.
    pub tls: Option<WebTls>,
    /// Whether a form may contain shell commands and file names.
    pub allows_commands: bool,
}

type App = Arc<WebState>;

/// Serves the pages until the process ends. Returns an error only if the server cannot start.
pub fn serve_pages(listener: TcpListener, settings: WebSettings) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::cannot_start(format!("the pages cannot be served: {error}"));
    let WebSettings { store: folder, program, access, renderers, tls, allows_commands } = settings;
    let store = Mutex::new(Store::open(&folder)?);
    let studies = StartedStudies::new(&folder, program);
    let app = Arc::new(WebState {
        folder,
        store,
        studies,
        renderers,
        access,
        style: app_style(),
        marks_lock: Mutex::default(),
        allows_commands,
    });
    listener.set_nonblocking(true).map_err(cannot)?;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_io().enable_time().max_blocking_threads(READER_THREADS_MAX).build().map_err(cannot)?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        match tls {
            Some(tls) => axum::serve(tls.wrap_listener(listener), build_router(app)).await.map_err(cannot),
            None => axum::serve(listener, build_router(app)).await.map_err(cannot),
        }
    })
}

/// Creates the table of routes, which has the handler of each URL path.
fn build_router(app: App) -> Router {
    Router::new()
        .route("/", get(|State(app): State<App>| respond_with_html(app, views::services_page)))
        .route(
            "/history",
            get(|State(app): State<App>, query: RawQuery| {
                respond_with_html(app, move |it| views::history_page(it, &parse_query(query)))
            }),
        )
        .route("/runs", get(|State(app): State<App>| respond_with_html(app, views::runs_page)))
        .route("/runs/{file}", get(run_page))
        .route("/runs/{file}/page.html", get(whole_page))
        .route("/runs/{file}/summary.md", get(run_summary_text))
        .route("/runs/{file}/document.json", get(document))
        .route("/runs/{file}/file", get(run_file))
        .route("/runs/{file}/picture", get(run_picture))
        .route("/runs/{file}/marks", post(mark_and_redirect))
        .route("/runs/{file}/delete", post(delete_and_redirect))
        .route("/api/v1/runs/{file}/marks", post(mark_json))
        .route("/api/v1/runs/{file}/delete", post(delete_json))
        .route(
            "/compare",
            get(|State(app): State<App>, query: RawQuery| {
                respond_with_html(app, move |it| views::comparison_page(it, &parse_query(query)))
            }),
        )
        .route("/start", get(start_page).post(start_study_and_redirect))
        .route("/studies/{name}", get(job_page))
        .route("/studies/{name}/progress", get(job_progress))
        .route("/studies/{name}/stop", post(stop_study_and_redirect))
        .route("/login", get(log_in_with_token))
        .route(
            "/api/v1/runs",
            get(|State(app): State<App>, query: RawQuery| {
                respond_with_json(app, move |it| api::runs_json(it, &parse_query(query)))
            }),
        )
        .route(
            "/api/v1/history",
            get(|State(app): State<App>, query: RawQuery| {
                respond_with_json(app, move |it| api::history_json(it, &parse_query(query)))
            }),
        )
        .route("/api/v1/runs/{file}", get(document))
        .route(
            "/api/v1/studies",
            get(|State(app): State<App>| respond_with_json(app, |it| Ok(api::studies_json(it)))).post(start_json),
        )
        .route(
            "/api/v1/studies/{name}",
            get(|State(app): State<App>, Path(name): Path<String>| {
                respond_with_json(app, move |it| api::study_json(it, &name))
            }),
        )
        .route("/api/v1/studies/{name}/stop", post(stop_json))
        .route("/metrics", get(metrics_text))
        .route(
            "/app.css",
            get(|State(app): State<App>| async move { asset_response("text/css; charset=utf-8", app.style.clone()) }),
        )
        .route("/app.js", get(|| async { asset_response(JAVASCRIPT_CONTENT_TYPE, APP_SCRIPT.to_owned()) }))
        .route("/page.js", get(|| async { asset_response(JAVASCRIPT_CONTENT_TYPE, page::page_script().to_owned()) }))
        .route("/flame.js", get(|| async { asset_response(JAVASCRIPT_CONTENT_TYPE, flame::flame_script().to_owned()) }))
        .fallback(|| async { problem_response(&Problem::not_found("there is no such page")) })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&app), check_access_and_add_headers))
        .with_state(app)
}

const JAVASCRIPT_CONTENT_TYPE: &str = "text/javascript; charset=utf-8";
const HTML_CONTENT_TYPE: &str = "text/html; charset=utf-8";
const JSON_CONTENT_TYPE: &str = "application/json; charset=utf-8";

fn parse_query(RawQuery(query): RawQuery) -> Query {
    Query::parse(query.unwrap_or_default().as_bytes())
}

/// Checks whether a request is allowed, and adds the common headers to every response.
async fn check_access_and_add_headers(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_login = request.uri().path() == "/login";
    let mut answer = match app.access.check_request(request.method(), request.headers(), is_login) {
        Ok(()) => next.run(request).await,
        Err(refusal) => problem_response(&Problem { status: refusal.status(), text: refusal.text().to_owned() }),
    };
    for (name, value) in security_headers() {
        answer.headers_mut().entry(name).or_insert(value);
    }
    answer
}

/// Runs `work`, which reads files, on another thread, so that the thread which serves requests is
/// not blocked.
async fn run_on_file_thread<T: Send + 'static>(
    app: App,
    work: impl FnOnce(&WebState) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&app)).await;
    done.unwrap_or_else(|_| {
        Err(Problem {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            text: "plimsoll could not render this page: this is a bug of plimsoll".to_owned(),
        })
    })
}

fn build_response(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn asset_response(kind: &'static str, text: String) -> Response {
    build_response(StatusCode::OK, kind, text)
}

/// Builds the HTML error page for a problem, as a response with the HTTP status of the problem.
fn problem_response(problem: &Problem) -> Response {
    let title = problem.status.canonical_reason().unwrap_or("Problem");
    build_response(problem.status, HTML_CONTENT_TYPE, problem_page(title, &problem.text))
}

async fn respond_with_html(
    app: App,
    work: impl FnOnce(&WebState) -> Result<String, Problem> + Send + 'static,
) -> Response {
    match run_on_file_thread(app, work).await {
        Ok(page) => build_response(StatusCode::OK, HTML_CONTENT_TYPE, page),
        Err(problem) => problem_response(&problem),
    }
}

async fn respond_with_json(
    app: App,
    work: impl FnOnce(&WebState) -> Result<Value, Problem> + Send + 'static,
) -> Response {
    match run_on_file_thread(app, work).await {
        Ok(document) => {
            build_response(StatusCode::OK, JSON_CONTENT_TYPE, plimsoll_report::json::indented_json_text(&document))
        }
        Err(problem) => json_problem(&problem),
    }
}

fn json_problem(problem: &Problem) -> Response {
    build_response(
        problem.status,
        JSON_CONTENT_TYPE,
        plimsoll_report::json::indented_json_text(&serde_json::json!({ "error": problem.text })),
    )
}

async fn whole_page(State(app): State<App>, Path(file): Path<String>) -> Response {
    let made =
        run_on_file_thread(app, move |it| Ok((it.renderers.whole_page)(&views::run_file_path(it, &file)?)?)).await;
    match made {
        Ok(page) => {
            let mut page = build_response(StatusCode::OK, HTML_CONTENT_TYPE, page);
            // The page is sent as a download, because it contains an inline script, which this
            // server's content security policy forbids.
            page.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
            page
        }
        Err(problem) => problem_response(&problem),
    }
}

async fn run_summary_text(State(app): State<App>, Path(file): Path<String>) -> Response {
    match run_on_file_thread(app, move |it| Ok((it.renderers.summary)(&views::run_file_path(it, &file)?)?)).await {
        Ok(text) => build_response(StatusCode::OK, "text/plain; charset=utf-8", text),
        Err(problem) => problem_response(&problem),
    }
}

async fn document(State(app): State<App>, Path(file): Path<String>) -> Response {
    respond_with_json(app, move |it| api::finding_document(it, &file)).await
}

async fn run_file(State(app): State<App>, Path(file): Path<String>) -> Response {
    let read = run_on_file_thread(app, move |it| {
        let path = views::run_file_path(it, &file)?;
        let cannot = |error: std::io::Error| Problem::not_found(format!("the run file cannot be read: {error}"));
        match std::fs::metadata(&path).map_err(cannot)?.len() > DOWNLOAD_BYTES_MAX {
            true => Err(Problem::bad_request("the run file is too large to be sent: copy the file from the store")),
            false => std::fs::read(&path).map_err(cannot),
        }
    });
    match read.await {
        Ok(bytes) => {
            let mut sent = build_response(StatusCode::OK, "application/octet-stream", bytes);
            sent.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
            sent
        }
        Err(problem) => problem_response(&problem),
    }
}

async fn run_picture(State(app): State<App>, Path(file): Path<String>) -> Response {
    match run_on_file_thread(app, move |it| Ok((it.renderers.picture)(&views::run_file_path(it, &file)?)?)).await {
        // In a build without PNG support the picture is an SVG.
        Ok(bytes) if PICTURE_SUFFIX == "png" => build_response(StatusCode::OK, "image/png", bytes),
        Ok(bytes) => build_response(StatusCode::OK, "image/svg+xml", bytes),
        Err(problem) => problem_response(&problem),
    }
}

async fn metrics_text(State(app): State<App>) -> Response {
    let text = run_on_file_thread(app, |it| {
        Ok(metrics::render(&group_comparable_runs(&it.matching_runs(&RunFilter::default())?, SeriesOrder::Time)))
    })
    .await;
    match text {
        Ok(text) => build_response(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text),
        Err(problem) => problem_response(&problem),
    }
}

/// Returns a redirect response with status 303, so that the browser requests `address` with GET.
fn redirect_response(address: &str) -> Response {
    let mut answer = build_response(StatusCode::SEE_OTHER, HTML_CONTENT_TYPE, "");
    // The header is always valid, because URL paths of this server contain only ASCII characters.
    if let Ok(address) = HeaderValue::from_str(address) {
        answer.headers_mut().insert(header::LOCATION, address);
    }
    answer
}

async fn log_in_with_token(State(app): State<App>, query: RawQuery) -> Response {
    match parse_query(query).get("token").filter(|token| app.access.matches_token(token)) {
        Some(_) => {
            let mut answer = redirect_response("/");
            if let Ok(cookie) = HeaderValue::from_str(&app.access.set_cookie_value()) {
                answer.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            answer
        }
        None => problem_response(&Problem {
            status: StatusCode::UNAUTHORIZED,
            text: "this token is not the token that plimsoll serve printed".to_owned(),
        }),
    }
}

async fn run_page(State(app): State<App>, headers: HeaderMap, Path(file): Path<String>) -> Response {
    let may_act = app.access.has_token(&headers);
    respond_with_html(app, move |it| views::run_page(it, &file, may_act)).await
}

async fn start_page(State(app): State<App>, headers: HeaderMap, query: RawQuery) -> Response {
    let may_act = app.access.has_token(&headers);
    respond_with_html(app, move |it| views::start_page(it, &parse_query(query), may_act)).await
}

async fn start_study(app: App, body: Bytes) -> Result<String, Problem> {
    run_on_file_thread(app, move |it| Ok(it.studies.start(&views::parse_study_form(it, &Query::parse(&body))?)?.name))
        .await
}

async fn start_study_and_redirect(State(app): State<App>, body: Bytes) -> Response {
    let asked = Query::parse(&body);
    if asked.get("show").is_some() {
        // A user who submits a form has the token, because the access check requires the token for
        // forms.
        return respond_with_html(app, move |it| views::start_page(it, &asked, true)).await;
    }
    match start_study(app, body).await {
        Ok(name) => redirect_response(&format!("/studies/{}", percent_encode(&name))),
        Err(problem) => problem_response(&problem),
    }
}

async fn start_json(State(app): State<App>, body: Bytes) -> Response {
    match start_study(Arc::clone(&app), body).await {
        Ok(name) => respond_with_json(app, move |it| api::study_json(it, &name)).await,
        Err(problem) => json_problem(&problem),
    }
}

async fn mark_run(app: App, file: String, body: Bytes) -> Result<String, Problem> {
    run_on_file_thread(app, move |it| mark_form::change_marks(it, &file, &Query::parse(&body)).map(|()| file)).await
}

async fn mark_and_redirect(State(app): State<App>, Path(file): Path<String>, body: Bytes) -> Response {
    match mark_run(app, file, body).await {
        Ok(file) => redirect_response(&format!("/runs/{}", percent_encode(&file))),
        Err(problem) => problem_response(&problem),
    }
}

async fn mark_json(State(app): State<App>, Path(file): Path<String>, body: Bytes) -> Response {
    match mark_run(Arc::clone(&app), file, body).await {
        Ok(file) => respond_with_json(app, move |it| api::one_run_list_json(it, &file)).await,
        Err(problem) => json_problem(&problem),
    }
}

async fn delete_and_redirect(State(app): State<App>, Path(file): Path<String>) -> Response {
    match run_on_file_thread(app, move |it| mark_form::delete_run(it, &file)).await {
        Ok(()) => redirect_response("/runs"),
        Err(problem) => problem_response(&problem),
    }
}

async fn delete_json(State(app): State<App>, Path(file): Path<String>) -> Response {
    respond_with_json(app, move |it| {
        mark_form::delete_run(it, &file)?;
        Ok(serde_json::json!({ "schema": "plimsoll.deleted/1", "file": file }))
    })
    .await
}

async fn job_page(State(app): State<App>, headers: HeaderMap, Path(name): Path<String>) -> Response {
    let may_act = app.access.has_token(&headers);
    respond_with_html(app, move |it| views::study_page(it, &name, may_act)).await
}

async fn job_progress(State(app): State<App>, Path(name): Path<String>) -> Response {
    let part = run_on_file_thread(app, move |it| {
        let job = it.studies.get(&name).ok_or_else(|| Problem::not_found("there is no such study"))?;
        Ok((views::render_study_progress(it, &job), job.is_running()))
    });
    match part.await {
        Ok((part, is_running)) => {
            let mut answer = build_response(StatusCode::OK, HTML_CONTENT_TYPE, part);
            if !is_running {
                answer.headers_mut().insert("x-study-ended", HeaderValue::from_static("1"));
            }
            answer
        }
        Err(problem) => problem_response(&problem),
    }
}

async fn stop_study(app: App, name: String) -> Result<String, Problem> {
    run_on_file_thread(app, move |it| {
        let job = it.studies.get(&name).ok_or_else(|| Problem::not_found("there is no such study"))?;
        it.studies.stop(&job).map(|()| name)
    })
    .await
}

async fn stop_study_and_redirect(State(app): State<App>, Path(name): Path<String>) -> Response {
    match stop_study(app, name).await {
        Ok(name) => redirect_response(&format!("/studies/{}", percent_encode(&name))),
        Err(problem) => problem_response(&problem),
    }
}

async fn stop_json(State(app): State<App>, Path(name): Path<String>) -> Response {
    match stop_study(Arc::clone(&app), name).await {
        Ok(name) => respond_with_json(app, move |it| api::study_json(it, &name)).await,
        Err(problem) => json_problem(&problem),
    }
}
