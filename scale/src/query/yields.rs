//! Has joins pause now and then. What reads them asks for batch after batch, of which a join of
//! large tables has any number, without reading anything anew: nothing else would be heard
//! meanwhile, such as that the query is to end.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::SchedulingType;
use std::sync::Arc;

/// The last rule by which plans are changed.
#[derive(Debug)]
pub(super) struct JoinsYield;

impl PhysicalOptimizerRule for JoinsYield {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let yielding = |plan: Arc<dyn ExecutionPlan>| {
            let yields = plan.properties().scheduling_type == SchedulingType::Cooperative;
            Ok(match plan.children().len() > 1 && !yields {
                true => Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _),
                false => Transformed::no(plan),
            })
        };
        Ok(plan.transform_up(yielding)?.data)
    }

    fn name(&self) -> &str {
        "JoinsYield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
