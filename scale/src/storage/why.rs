//! What object storage has to say, as a sentence for people.
//!
//! `object_store` tells kinds of errors apart, but its texts are those of all layers with their
//! numbers of attempts, and services answer in XML.

use crate::Failure;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

/// The longest text of others that is passed on.
const LONGEST: usize = 300;

/// What services say of a bucket that is not there.
const NO_BUCKET: [&str; 3] =
    ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];
/// Where credentials come from if the environment has none: the machines of a cloud.
const METADATA: [&str; 5] = [
    "169.254.169.254",
    "169.254.170.2",
    "/latest/api/token",
    "metadata.google.internal",
    "Missing AccessKeyId",
];

/// Whether an object is not there, in a bucket that is.
pub(super) fn is_absent(error: &Error) -> bool {
    let no_bucket = |text: String| NO_BUCKET.iter().any(|code| text.contains(code));
    matches!(error, Error::NotFound { .. }) && !no_bucket(error.to_string())
}

/// What went wrong with `name`.
pub(super) fn sentence(name: &str, error: &Error) -> Failure {
    let text = error.to_string();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let root = innermost(error);
    let at = server(&text).map(|server| format!(" ({server})")).unwrap_or_default();
    let what = if has(&NO_BUCKET) {
        "there is no such bucket".to_owned()
    } else if has(&METADATA) || text.contains("Missing SecretAccessKey") {
        format!("there are no credentials: {}", credentials(name))
    } else if root == "URL scheme is not allowed" {
        format!("the storage{at} is without encryption: AWS_ALLOW_HTTP=true allows that")
    } else if text.contains("Account must be specified") {
        format!("there is no account: {}", credentials(name))
    } else if matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) {
        format!("access is denied{}; {}", answer(&text), credentials(name))
    } else if matches!(error, Error::NotFound { .. }) {
        "it is not there".to_owned()
    } else if matches!(error, Error::Precondition { .. }) {
        "it was changed while it was read: try again".to_owned()
    } else if let Some(kind) = kind(error) {
        match kind {
            HttpErrorKind::Connect => format!("the storage{at} cannot be reached: {root}"),
            HttpErrorKind::Timeout => {
                format!("the storage{at} is too slow: nothing came for 30 seconds, again and again")
            }
            HttpErrorKind::Unknown => format!("the storage{at} cannot be asked: {root}"),
            _ => format!("the connection to the storage{at} was cut: {root}"),
        }
    } else if let Some(status) = status(&text) {
        format!("the storage{at} answers {status}{}", answer(&text))
    } else {
        root
    };
    let short: String = what.chars().take(LONGEST).collect();
    Failure(format!("{name}: {short}"))
}

/// The sentence about object storage in an error of another library, if that was the reason.
#[cfg(feature = "query")]
pub(crate) fn found(error: &(dyn std::error::Error + 'static)) -> Option<Failure> {
    let mut chain = std::iter::successors(Some(error), |error| error.source());
    chain.find_map(|error| error.downcast_ref::<Failure>()).cloned()
}

/// What is to be said for credentials.
fn credentials(name: &str) -> &'static str {
    match name.split_once("://") {
        Some(("gs", _)) => "GOOGLE_SERVICE_ACCOUNT names a file with some",
        Some(("az", _)) => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY say some",
        Some(("http" | "https", _)) => "kymo has none for this server",
        _ => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say some",
    }
}

fn chain(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
}

/// The first reason, on one line.
fn innermost(error: &Error) -> String {
    let text = chain(error).last().map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind(error: &Error) -> Option<HttpErrorKind> {
    chain(error).find_map(|error| error.downcast_ref::<HttpError>()).map(HttpError::kind)
}

/// `https://host:port` of the request.
fn server(text: &str) -> Option<&str> {
    let from = text.find("http://").or_else(|| text.find("https://"))?;
    let address = &text[from..];
    let host = address.find("://")? + "://".len();
    let end = address[host..].find(|c: char| c == '/' || c == '?' || c.is_whitespace());
    Some(&address[..end.map_or(address.len(), |end| host + end)])
}

/// `503 Service Unavailable`.
fn status(text: &str) -> Option<&str> {
    let behind = text.split_once("status code: ")?.1;
    behind.split([':', '\n']).next().map(str::trim)
}

/// The code and the message of a service's answer in XML, in brackets.
fn answer(text: &str) -> String {
    let of = |name: &str| {
        let behind = text.split_once(&format!("<{name}>"))?.1;
        behind.split_once("</").map(|(value, _)| value.trim().to_owned())
    };
    let parts: Vec<String> = [of("Code"), of("Message")].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(": ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn what_services_answer_becomes_a_sentence() {
        let text = "Error performing PUT https://s3.example.com:9000/b/k?x=1 in 3s - Server \
                    returned non-2xx status code: 503 Service Unavailable: <Error><Code>SlowDown\
                    </Code><Message>Please reduce your request rate.</Message></Error>";
        let why = sentence("s3://b/k", &generic(text)).0;
        let expected = "s3://b/k: the storage (https://s3.example.com:9000) answers 503 Service \
                        Unavailable (SlowDown: Please reduce your request rate.)";
        assert_eq!(why, expected);
    }

    #[test]
    fn a_bucket_that_is_not_there_is_no_object_that_is_not_there() {
        let absent = |text: &str| {
            let source = text.to_owned().into();
            is_absent(&Error::NotFound { path: "k".to_owned(), source })
        };
        assert!(absent("<Code>NoSuchKey</Code>"));
        assert!(!absent("<Code>NoSuchBucket</Code>"));
        let why = sentence("s3://b", &generic("<Code>NoSuchBucket</Code>")).0;
        assert_eq!(why, "s3://b: there is no such bucket");
    }

    #[test]
    fn texts_of_others_are_cut() {
        let why = sentence("gs://b", &generic(&"ö".repeat(10_000))).0;
        assert_eq!(why.chars().count(), "gs://b: ".len() + LONGEST);
    }
}
