//! What is planted, by part.

mod core;
mod driver;
mod etcd;
mod http;
mod locks;
mod mongodb;
mod mysql;
mod nats;
mod postgres;
mod redis;
mod sqlite;
mod watermark;

use super::part::{CORE, DRIVER, ETCD, HTTP, MONGODB, MYSQL, NATS, POSTGRES, REDIS, SQLITE, WATERMARK};
use super::{Part, PartRow};
use std::sync::LazyLock;

/// Something wrong in the part whose folder has its file.
struct Wrong {
    name: &'static str,
    guarantee: &'static str,
    file: &'static str,
    edits: &'static [[&'static str; 2]],
    noticed_by: &'static [&'static str],
}

const fn row(
    name: &'static str,
    guarantee: &'static str,
    file: &'static str,
    edits: &'static [[&'static str; 2]],
    noticed_by: &'static [&'static str],
) -> Wrong {
    Wrong {
        name,
        guarantee,
        file,
        edits,
        noticed_by,
    }
}

impl Wrong {
    const fn of(&self, part: &'static Part) -> PartRow {
        PartRow {
            part,
            name: self.name,
            guarantee: self.guarantee,
            file: self.file,
            edits: self.edits,
            noticed_by: self.noticed_by,
        }
    }
}

static ROWS: LazyLock<Vec<PartRow>> = LazyLock::new(|| {
    let parts = [
        (SQLITE, sqlite::ROWS),
        (POSTGRES, postgres::ROWS),
        (MYSQL, mysql::ROWS),
        (REDIS, redis::ROWS),
        (MONGODB, mongodb::ROWS),
        (ETCD, etcd::ROWS),
        (NATS, nats::ROWS),
        (WATERMARK, watermark::ROWS),
        (HTTP, http::ROWS),
        (CORE, core::ROWS),
        (DRIVER, driver::ROWS),
        (DRIVER, locks::ROWS),
    ];
    let rows = parts
        .into_iter()
        .flat_map(|(part, rows)| rows.iter().map(move |row| row.of(part)));
    rows.collect()
});

/// Everything that is planted, in the order of the table.
#[must_use]
pub fn part_rows() -> &'static [PartRow] {
    &ROWS
}
