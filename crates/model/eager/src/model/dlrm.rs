//! DLRM: dense features through an MLP, tables, an interaction, an MLP. DCN-v2 is a DLRM with a cross network as interaction.

use super::file::{Architecture, Description, Interaction};
use super::interaction::Meeting;
use super::layers::{Linear, Lookups, Mlp, Tables};
use super::network::{Network, batch, loss_of, output};
use crate::eager::Eager;
use crate::reducer;
use crate::tensor::Tensor;

pub(super) struct Dlrm {
    of: Description,
    bottom: Mlp,
    tables: Tables,
    /// Projections of rows with another width to the common width.
    projections: Vec<Option<Linear>>,
    meeting: Meeting,
    top: Mlp,
}

impl Dlrm {
    pub(super) fn new(e: &mut Eager, of: &Description) -> Dlrm {
        let kind = match of.model {
            Architecture::DcnV2 => Interaction::Cross,
            _ => of.interaction.unwrap_or(Interaction::Dot),
        };
        let bottom = e.within("bottom", |e| Mlp::new(e, of.dense, &of.bottom_mlp, true));
        let tables = Tables::new(e, of, of.each_table().enumerate());
        let meets = matches!(kind, Interaction::Dot | Interaction::Fm);
        let common = if of.dense > 0 { bottom.width } else { of.tables[0].columns };
        let mut widths: Vec<i64> = tables.columns().collect();
        let mut projections = Vec::with_capacity(widths.len());
        for (at, width) in widths.iter_mut().enumerate() {
            let odd = meets && *width != common;
            let projection = |e: &mut Eager| Linear::new(e, *width, common, false);
            projections.push(odd.then(|| e.within(&format!("projections.{at}"), projection)));
            *width = if odd { common } else { *width };
        }
        if of.dense > 0 {
            widths.insert(0, bottom.width);
        }
        let tables = if projections.iter().any(Option::is_some) { tables.separate() } else { tables };
        let meeting = Meeting::new(e, kind, of, &widths);
        let top = e.within("top", |e| Mlp::new(e, meeting.width, &of.top_mlp, false));
        Dlrm { of: of.clone(), bottom, tables, projections, meeting, top }
    }

    fn forward(&self, e: &mut Eager, dense: Option<&Tensor>, at: &Lookups) -> Tensor {
        if e.world.is_none() {
            let dense = self.bottom(e, dense);
            let rows = e.label("## embedding ##", |e| {
                let rows = self.tables.forward(e, at);
                self.projected(e, rows)
            });
            return self.interact(e, dense, rows);
        }
        let rows = e.label("## embedding ##", |e| self.tables.forward(e, at));
        reducer::forward(e, &self.meeting.buffers(), |e| {
            let rows = self.projected(e, rows);
            let dense = self.bottom(e, dense);
            self.interact(e, dense, rows)
        })
    }

    fn bottom(&self, e: &mut Eager, dense: Option<&Tensor>) -> Option<Tensor> {
        dense.map(|dense| e.label("## bottom_mlp ##", |e| self.bottom.forward(e, dense)))
    }

    fn projected(&self, e: &mut Eager, mut rows: Vec<Tensor>) -> Vec<Tensor> {
        for (row, projection) in rows.iter_mut().zip(&self.projections) {
            if let Some(projection) = projection {
                *row = projection.forward(e, row);
            }
        }
        rows
    }

    fn interact(&self, e: &mut Eager, dense: Option<Tensor>, rows: Vec<Tensor>) -> Tensor {
        let met = e.label("## interaction ##", |e| self.meeting.forward(e, dense, rows));
        e.label("## top_mlp ##", |e| {
            let logit = self.top.forward(e, &met);
            output(e, &self.of, logit)
        })
    }
}

impl Network for Dlrm {
    fn loss(&self, e: &mut Eager) -> Tensor {
        let (dense, at, labels) = batch(e, &self.of, &self.tables);
        let output = e.label("## forward ##", |e| self.forward(e, dense.as_ref(), &at));
        loss_of(e, &self.of, &output, &labels)
    }
}
