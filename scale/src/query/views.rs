//! Views: what queries often begin with.

use datafusion::error::Result;
use datafusion::prelude::SessionContext;

/// Each a name, and the query that it stands for.
const VIEWS: [(&str, &str); 3] = [
    (
        "device_work",
        "SELECT * FROM kernels WHERE kind IN ('kernel', 'copy', 'fill', 'communication')",
    ),
    (
        "operators_with_kernels",
        "SELECT o.rank, o.id, o.ts, o.dur, o.name, o.step, k.id AS kernel_id, k.ts AS kernel_ts, \
         k.dur AS kernel_dur, k.name AS kernel_name, k.class, k.device, k.stream \
         FROM operators o \
         JOIN calls c ON c.rank = o.rank AND c.parent = o.id \
         JOIN flows f ON f.rank = c.rank AND f.from_id = c.id AND f.kind = 'launch' \
         JOIN kernels k ON k.rank = f.rank AND k.id = f.to_id",
    ),
    (
        // What a rank spends beyond the shortest share, it waits for the rank with that.
        "collectives_across_ranks",
        "SELECT \"group\", step, sequence, min(collective) AS collective, count(*) AS ranks, \
         max(message) AS message, min(duration) AS transfer, \
         max(duration) - min(duration) AS longest_wait, \
         sum(duration) - count(*) * min(duration) AS wait, \
         first_value(rank ORDER BY duration, rank) AS last_rank, \
         busbw(min(collective), max(message), min(duration), count(*)) AS bus_bandwidth \
         FROM collectives GROUP BY \"group\", step, sequence",
    ),
];

/// Registers them.
pub(super) async fn register(context: &SessionContext) -> Result<()> {
    for (name, query) in VIEWS {
        let view = context.sql(query).await?.into_view();
        context.register_table(name, view)?;
    }
    Ok(())
}
