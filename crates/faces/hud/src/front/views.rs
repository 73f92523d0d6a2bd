//! Views that people saved: kept for all traces in the folder of their configuration, `views/saved.json`.

use super::Front;
use super::notes::{self, Notes};
use crate::fault::Fault;
use crate::reply::Reply;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Body {
    /// What is to be kept; none: they are read.
    views: Option<serde_json::Map<String, Value>>,
    /// The version that they were made from.
    version: Option<String>,
}

pub(super) fn views(front: &Front, body: Value) -> Result<Reply, Fault> {
    let Body { views, version } = serde_json::from_value(body).map_err(Fault::wrong)?;
    let Some(folder) = &front.views else {
        let why = "this server has no folder for saved views".to_owned();
        if views.is_some() {
            return Err(Fault::Forbidden(why));
        }
        return Reply::json(&Notes::nowhere(why));
    };
    if views.is_some() && !front.readonly {
        let cannot = |error: std::io::Error| Fault::Forbidden(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    Reply::json(&notes::kept(&folder.join("saved.json"), front.readonly, views, version)?)
}
