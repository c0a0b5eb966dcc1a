//! Splitting of traces of several processes in one file.

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

use super::overlaps;
use super::{Activity, Builder, Call, GpuAnnotation, HostInterval, HostOp, SyncEvent, ThreadId, Trace};
use crate::collective::Carrier;
use crate::other_profilers::is_step_name;
use crate::units::Nanos;

/// Minimum share of a device's activities that must belong to one process for the device to be counted as its own.
const OWNER: f64 = 0.9;

impl Trace {
    /// Returns the traces of the processes that marked steps, by process id, if there are several. Device work is assigned to
    /// the process whose call has its correlation. Several processes may use the same correlations: then the owner of the device
    /// is chosen, and on a shared device the process of the latest call before it. If no correlation is unique, and there are as many devices as
    /// processes,
    /// they are matched in order. Threads of other processes are dropped.
    pub(crate) fn split_processes(&self) -> Option<Vec<Trace>> {
        let pids = self.stepping_processes();
        if pids.len() < 2 {
            return None;
        }
        let owners = self.owners_of_activities(&pids);
        Some((0..pids.len()).map(|process| self.select_process(pids[process], process, &owners)).collect())
    }

    /// Returns the ids of the processes that marked steps, ascending.
    #[must_use]
    pub fn stepping_processes(&self) -> Vec<i64> {
        let is_step: Vec<bool> = self.names.iter().map(|(_, name)| is_step_name(name)).collect();
        let marks = (0..self.ops.len()).filter(|&op| is_step[self.ops.name[op].index()]);
        let pids: BTreeSet<i64> = marks.map(|op| self.pid(self.ops.thread[op])).collect();
        pids.into_iter().collect()
    }

    fn pid(&self, thread: ThreadId) -> i64 {
        self.threads[thread.0 as usize].pid
    }

    /// Returns for each activity the position in `pids` of the process that launched it.
    fn owners_of_activities(&self, pids: &[i64]) -> Vec<usize> {
        let mut callers: FxHashMap<u64, Vec<(Nanos, usize)>> = FxHashMap::default();
        for call in 0..self.calls.len() {
            let Ok(process) = pids.binary_search(&self.pid(self.calls.thread[call])) else { continue };
            callers.entry(self.calls.correlation[call]).or_default().push((self.calls.start[call], process));
        }
        let activities = &self.activities;
        let device = |row: usize| self.streams[activities.stream[row].0 as usize].device;
        let of = |row: usize| callers.get(&activities.correlation[row]).map_or(&[][..], |found| found);
        // Per device, the activities that only one process can have launched.
        let mut counts: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for row in 0..activities.len() {
            if let [(_, first), rest @ ..] = of(row)
                && rest.iter().all(|(_, process)| process == first)
            {
                counts.entry(device(row)).or_insert_with(|| vec![0; pids.len()])[*first] += 1;
            }
        }
        let owner = |counts: &Vec<usize>| {
            let most = (0..counts.len()).max_by_key(|&process| counts[process])?;
            let share = counts[most] as f64 / counts.iter().sum::<usize>() as f64;
            (share >= OWNER).then_some(most)
        };
        let mut owners: FxHashMap<u32, usize> =
            counts.iter().filter_map(|(&device, counts)| Some((device, owner(counts)?))).collect();
        if counts.is_empty() {
            // No correlation is unique: as many devices as processes are matched in order.
            let devices: BTreeSet<u32> = (0..activities.len()).map(device).collect();
            if devices.len() == pids.len() {
                owners.extend(devices.into_iter().zip(0..));
            }
        }
        let of_activity = |row: usize| {
            let (found, own) = (of(row), owners.get(&device(row)));
            let is_own = |process: usize| own == Some(&process);
            if let Some(&(_, process)) = found.iter().find(|&&(_, process)| is_own(process)) {
                return process;
            }
            let before = found.iter().filter(|(start, _)| *start <= activities.start[row]);
            let last = before.max_by_key(|(start, _)| *start).or(found.first());
            last.map(|&(_, process)| process).or(own.copied()).unwrap_or(0)
        };
        (0..activities.len()).map(of_activity).collect()
    }

    /// Returns the rows of one process as a separate trace.
    fn select_process(&self, pid: i64, process: usize, owners: &[usize]) -> Trace {
        let mut builder = Builder::default();
        builder.trace.origin = self.origin;
        builder.trace.names = self.names.clone();
        builder.trace.devices = self.devices.clone();
        builder.trace.base_time = self.base_time;
        if process == 0 {
            builder.trace.notes = self.notes.clone();
        }
        let is_own = |thread: ThreadId| self.pid(thread) == pid;
        let mut ops: FxHashMap<u32, u32> = FxHashMap::default();
        for (row, op) in self.ops.rows().enumerate().filter(|(_, op)| is_own(op.thread)) {
            ops.insert(row as u32, builder.trace.ops.len() as u32);
            let thread = builder.thread_id(self.threads[op.thread.0 as usize]);
            builder.trace.ops.push(HostOp { thread, ..op });
        }
        builder.trace.inputs = self.inputs.select(|op| ops.get(&op).copied());
        for call in self.calls.rows().filter(|call| is_own(call.thread)) {
            let thread = builder.thread_id(self.threads[call.thread.0 as usize]);
            builder.trace.calls.push(Call { thread, ..call });
        }
        for row in self.overheads.rows().filter(|row| is_own(row.thread)) {
            let thread = builder.thread_id(self.threads[row.thread.0 as usize]);
            builder.trace.overheads.push(HostInterval { thread, ..row });
        }
        let mut activities: FxHashMap<u32, u32> = FxHashMap::default();
        for (row, activity) in self.activities.rows().enumerate().filter(|&(row, _)| owners[row] == process) {
            activities.insert(row as u32, builder.trace.activities.len() as u32);
            let stream = builder.stream_id(self.streams[activity.stream.0 as usize]);
            let launch = builder.shape(*self.activities.launch_shape(row));
            builder.trace.activities.push(Activity { stream, launch, ..activity });
        }
        // Synchronisations and annotations of the device are assigned to a process if it used their stream.
        for row in self.syncs.rows() {
            let stream = self.streams[row.track.0 as usize];
            if builder.stream_ids.contains_key(&stream) {
                let track = builder.stream_id(stream);
                builder.trace.syncs.push(SyncEvent { track, ..row });
            }
        }
        for row in self.gpu_annotations.rows() {
            let stream = self.streams[row.stream.0 as usize];
            if builder.stream_ids.contains_key(&stream) {
                let stream = builder.stream_id(stream);
                builder.trace.gpu_annotations.push(GpuAnnotation { stream, ..row });
            }
        }
        overlaps::cut(&mut builder.trace.activities, &mut builder.trace.notes);
        builder.trace.collectives.extend(self.collectives.iter().filter_map(|collective| {
            let carrier = match collective.carrier {
                Carrier::Op(op) => Carrier::Op(*ops.get(&op)?),
                Carrier::Activity(row) => Carrier::Activity(*activities.get(&row)?),
                Carrier::Node(_) => return None,
            };
            Some(collective.clone().renamed(|name| name, carrier))
        }));
        builder.trace
    }
}
