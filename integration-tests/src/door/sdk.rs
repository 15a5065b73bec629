//! The Rust SDK as a door: what it sees and refuses is what its users see.

use async_trait::async_trait;
use futures::TryStreamExt;
use sluice_client::{Client, QueryOptions, Session};

use super::{Answer, Door, Failure, Line};
use crate::gateway::{TestGateway, USERS, password_of};
use crate::tls;

/// `sluice-client`, asynchronous.
pub(super) struct Sdk;

struct SdkLine {
    session: Session,
}

#[async_trait]
impl Door for Sdk {
    fn name(&self) -> &'static str {
        "Rust SDK"
    }

    fn tells_cancelled_from_cut(&self) -> bool {
        // The gateway also says "cancelled" when the link was cut and it saw its reader vanish.
        false
    }

    async fn connect(
        &self,
        gateway: &TestGateway,
        settings: &[(&str, &str)],
    ) -> Result<Box<dyn Line>, Failure> {
        let url = format!("sluice://localhost:{}", gateway.address().port());
        let mut builder = Client::builder(url)
            .user(USERS[0])
            .password(password_of(USERS[0]))
            .ca_pem(tls::certificate().pem.as_bytes());
        for (key, value) in settings {
            builder = builder.setting(*key, *value);
        }
        let session = builder.build()?.session().await?;
        Ok(Box::new(SdkLine { session }))
    }
}

#[async_trait]
impl Line for SdkLine {
    async fn run(&mut self, statement: &str, max_rows: Option<u64>) -> Result<Answer, Failure> {
        let options = QueryOptions {
            max_rows,
            ..QueryOptions::default()
        };
        let mut rows = self.session.query_with(statement, options).await?;
        let schema = rows.schema();
        let mut batches = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            batches.push(batch);
        }
        let summary = rows.summary();
        if !summary.complete {
            return Err(Failure::seen(
                "the SDK ended without proof and without an error",
            ));
        }
        Ok(Answer {
            schema,
            batches,
            // The SDK does not show how a message travelled.
            codecs: Vec::new(),
            truncated: Some(summary.truncated),
            bytes: 0,
        })
    }
}

impl From<sluice_client::Error> for Failure {
    fn from(error: sluice_client::Error) -> Self {
        Self {
            kind: Self::kind_of(error.kind().name()),
            sqlstate: error.sqlstate().to_owned(),
            message: error.to_string(),
        }
    }
}
