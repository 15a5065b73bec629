//! Numbers that would let nothing through, or too much. Must not know what they bound.

use std::time::Duration;

use super::mistake::Mistakes;
use super::raw::Raw;
use super::values::Span;

/// Counts end where the runtime's semaphores do.
const MOST: usize = usize::MAX >> 4;

pub(super) fn check(raw: &Raw, mistakes: &mut Mistakes) {
    counts(raw, mistakes);
    spans(raw, mistakes);
    sizes(raw, mistakes);
}

fn counts(raw: &Raw, mistakes: &mut Mistakes) {
    let counts = [
        ("server.max_connections", raw.server.max_connections),
        ("auth.max_concurrent_checks", raw.auth.max_concurrent_checks),
        ("limits.sessions", raw.limits.sessions),
        ("limits.sessions_per_user", raw.limits.sessions_per_user),
        ("limits.operations", raw.limits.operations),
        ("limits.operations_per_user", raw.limits.operations_per_user),
    ];
    for (key, count) in counts {
        if !(1..=MOST).contains(&count) {
            mistakes.add(
                key,
                format!("{count} is not allowed; allowed: a whole number from 1 up"),
            );
        }
    }
    let queue = raw.auth.check_queue;
    if queue > MOST {
        mistakes.add(
            "auth.check_queue",
            format!("{queue} is not allowed; allowed: up to {MOST}"),
        );
    }
    too_many_threads("server.codec_threads", raw.server.codec_threads, mistakes);
    for (name, engine) in &raw.engines {
        too_many_threads(&format!("engines.{name}.threads"), engine.threads, mistakes);
    }
}

fn too_many_threads(key: &str, threads: usize, mistakes: &mut Mistakes) {
    let most = 1024;
    if threads > most {
        let text = format!("{threads} is not allowed; allowed: 0 to {most}, 0 for one a processor");
        mistakes.add(key, text);
    }
}

fn spans(raw: &Raw, mistakes: &mut Mistakes) {
    let spans = [
        ("server.handshake_timeout", raw.server.handshake_timeout),
        ("server.header_timeout", raw.server.header_timeout),
        (
            "limits.session_idle_timeout",
            raw.limits.session_idle_timeout,
        ),
        ("limits.result_idle_timeout", raw.limits.result_idle_timeout),
    ];
    for (key, _) in spans
        .iter()
        .filter(|(_, span)| *span == Span(Duration::ZERO))
    {
        mistakes.add(*key, "no time is not allowed; allowed: a time such as 10s");
    }
}

fn sizes(raw: &Raw, mistakes: &mut Mistakes) {
    let sizes = [
        (
            "server.request_body_limit",
            raw.server.request_body_limit,
            1 << 10,
        ),
        (
            "limits.operation_memory",
            raw.limits.operation_memory,
            1 << 20,
        ),
        ("limits.max_row_bytes", raw.limits.max_row_bytes, 1 << 20),
    ];
    for (key, size, least) in sizes {
        if size.0 < least {
            mistakes.add(
                key,
                format!("{size} is too little; allowed: from {least} bytes up"),
            );
        }
    }
}
