//! Process groups of a job, from the records of each rank.

use crate::collectives::Group;
use crate::graph::StepGraph;

/// Maximum number of ranks in a job: a larger recorded size is ignored.
const MOST_RANKS: u32 = 1 << 20;

/// All recorded groups; gaps in the records of some ranks are filled from others.
pub(super) struct Groups {
    all: Vec<Group>,
}

/// Returns the groups of a job's ranks.
pub(super) fn find(ranks: &[(u32, &StepGraph)]) -> Groups {
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
    /// Returns the index of a group; the first is used for ranks that recorded none.
    pub(super) fn index(&self, group: &Group) -> usize {
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

/// Returns the number of ranks: at most the number of listed ones.
fn believed(group: &Group) -> Option<u32> {
    let listed = u32::try_from(group.ranks.len()).ok().filter(|&listed| listed > 0);
    listed.or(group.size.filter(|&size| size <= MOST_RANKS))
}
