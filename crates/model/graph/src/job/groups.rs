//! The process groups of a job, from what each rank recorded of them.

use crate::collectives::Group;
use crate::graph::StepGraph;

/// More ranks than any job has: a size beyond it is not believed.
const MOST_RANKS: u32 = 1 << 20;

/// All groups that ranks recorded; what some left out others fill in.
pub(super) struct Groups {
    all: Vec<Group>,
}

/// The groups of a job's ranks.
pub(super) fn of(ranks: &[(u32, &StepGraph)]) -> Groups {
    let mut groups = Groups { all: Vec::new() };
    let recorded =
        || ranks.iter().flat_map(|(_, graph)| &graph.collectives).map(|collective| &collective.group);
    for group in recorded().filter(|group| is_told(group)) {
        match groups.all.iter_mut().find(|known| same(known, group)) {
            Some(known) => {
                if known.ranks.is_empty() {
                    known.ranks.clone_from(&group.ranks);
                }
                known.size = known.size.max(believed(group));
            }
            None => groups.all.push(Group { size: believed(group), ..group.clone() }),
        }
    }
    if groups.all.is_empty() {
        groups.all.push(Group::default());
    }
    groups
}

impl Groups {
    /// The place of a group; the first is that of ranks that recorded none.
    pub(super) fn of(&self, group: &Group) -> usize {
        let place = self.all.iter().position(|known| same(known, group)).filter(|_| is_told(group));
        place.unwrap_or(0)
    }

    pub(super) fn get(&self, place: usize) -> &Group {
        &self.all[place]
    }
}

fn is_told(group: &Group) -> bool {
    !group.name.is_empty() || !group.ranks.is_empty()
}

/// Whether two records are of one group.
fn same(a: &Group, b: &Group) -> bool {
    a.name == b.name && (a.ranks == b.ranks || a.ranks.is_empty() || b.ranks.is_empty())
}

/// How many ranks it has: not more than it lists.
fn believed(group: &Group) -> Option<u32> {
    let listed = u32::try_from(group.ranks.len()).ok().filter(|&listed| listed > 0);
    listed.or(group.size.filter(|&size| size <= MOST_RANKS))
}
