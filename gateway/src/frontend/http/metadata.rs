//! Questions about what an engine holds, as operations of a session. Must not know the answers.

use axum::Json;
use axum::extract::State;
use sluice_core::engine::MetadataRequest;
use sluice_core::handle::Handle;
use sluice_wire::http::{
    ColumnsRequest, FunctionsRequest, OperationOpened, SchemasRequest, TablesRequest,
};

use super::Shared;
use super::caller::Caller;
use super::decode::{DecodedOrDefault, Named};
use super::error::Failure;

type Opened = Result<Json<OperationOpened>, Failure>;

/// All catalogs.
pub(super) async fn catalogs(state: State<Shared>, caller: Caller, session: Named) -> Opened {
    ask(state, caller, session.0, MetadataRequest::Catalogs).await
}

/// Schemas by pattern.
pub(super) async fn schemas(
    state: State<Shared>,
    caller: Caller,
    session: Named,
    DecodedOrDefault(request): DecodedOrDefault<SchemasRequest>,
) -> Opened {
    let SchemasRequest {
        catalog_name,
        schema_name,
    } = request;
    let catalog = named(catalog_name);
    ask(
        state,
        caller,
        session.0,
        MetadataRequest::Schemas {
            catalog,
            schema: named(schema_name),
        },
    )
    .await
}

/// Tables by pattern and type.
pub(super) async fn tables(
    state: State<Shared>,
    caller: Caller,
    session: Named,
    DecodedOrDefault(request): DecodedOrDefault<TablesRequest>,
) -> Opened {
    let question = MetadataRequest::Tables {
        catalog: named(request.catalog_name),
        schema: named(request.schema_name),
        table: named(request.table_name),
        types: request.table_types.unwrap_or_default(),
    };
    ask(state, caller, session.0, question).await
}

/// Columns by pattern.
pub(super) async fn columns(
    state: State<Shared>,
    caller: Caller,
    session: Named,
    DecodedOrDefault(request): DecodedOrDefault<ColumnsRequest>,
) -> Opened {
    let question = MetadataRequest::Columns {
        catalog: named(request.catalog_name),
        schema: named(request.schema_name),
        table: named(request.table_name),
        column: named(request.column_name),
    };
    ask(state, caller, session.0, question).await
}

/// Functions by pattern.
pub(super) async fn functions(
    state: State<Shared>,
    caller: Caller,
    session: Named,
    DecodedOrDefault(request): DecodedOrDefault<FunctionsRequest>,
) -> Opened {
    let question = MetadataRequest::Functions {
        name: named(request.function_name),
    };
    ask(state, caller, session.0, question).await
}

/// Types of tables.
pub(super) async fn table_types(state: State<Shared>, caller: Caller, session: Named) -> Opened {
    ask(state, caller, session.0, MetadataRequest::TableTypes).await
}

/// Types of columns.
pub(super) async fn type_info(state: State<Shared>, caller: Caller, session: Named) -> Opened {
    ask(state, caller, session.0, MetadataRequest::TypeInfo).await
}

/// Clients of HiveServer2 write an empty name where they mean any.
fn named(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty())
}

async fn ask(
    State(door): State<Shared>,
    caller: Caller,
    session: Handle,
    question: MetadataRequest,
) -> Opened {
    let session = door.gateway.session(&caller.identity, &session)?;
    let operation = door.gateway.metadata(&session, question).await?;
    Ok(Json(OperationOpened {
        identifier: operation.id().to_string(),
    }))
}
