//! Exchanges between GPUs that write the memory of one another; of ranks on one GPU too.

use steptime_cuda::peer::{Address, Mailbox, Peers, Phase, Rows, Sum};
use steptime_cuda::{Buffer, Device, Error, Stream};

use crate::support;

/// A rank with its stream.
struct Member {
    peers: Peers,
    stream: Stream,
}

/// Two ranks: on a GPU each, or both on the first one. Skipped without a GPU.
fn members() -> Option<[Member; 2]> {
    support::device()?;
    let count = Device::count().expect("a driver");
    let devices = [0, 1].map(|rank: usize| Device::open(rank.min(count - 1)).expect("a GPU"));
    assert!(Peers::reach(&devices).expect("a driver"), "the GPUs are linked");
    let boxes = devices.each_ref().map(|device| Mailbox::new(device, 2).expect("memory"));
    let all: Vec<Address> = boxes.iter().map(Mailbox::address).collect();
    let mut rank = 0..;
    Some(boxes.map(|mailbox| {
        let rank = rank.next().expect("a rank");
        let peers = Peers::join(mailbox, rank, all.clone()).expect("a group");
        Member { peers, stream: devices[rank].stream().expect("a stream") }
    }))
}

/// Signals a phase of an exchange to the other rank, and waits for it.
fn both(member: &Member, exchange: usize, phase: Phase, turn: u32) -> Result<(), Error> {
    let other = 1 - member.peers.rank();
    member.peers.signal(&member.stream, other, (exchange, phase), turn)?;
    member.peers.wait(&member.stream, other, (exchange, phase), turn)
}

#[test]
fn ranks_write_columns_of_one_another() {
    let Some(members) = members() else { return };
    let [from_width, to_width, rows] = [8, 12, 37];
    let mut from =
        members.each_ref().map(|own| Buffer::<f32>::zeros(&own.stream, rows * from_width).expect("memory"));
    let to =
        members.each_ref().map(|own| Buffer::<f32>::zeros(&own.stream, rows * to_width).expect("memory"));
    members.iter().for_each(|own| own.stream.synchronize().expect("zeros"));
    let exchange = members.each_ref().map(|own| own.peers.new_exchange().expect("an exchange"))[0];
    for turn in 1..=5_u32 {
        let number = |rank: usize, at: usize| (1000 * turn as usize + 500 * rank + at) as f32;
        for (rank, own) in members.iter().enumerate() {
            let values: Vec<f32> = (0..rows * from_width).map(|at| number(rank, at)).collect();
            from[rank].as_mut().write(&own.stream, &values).expect("a copy");
        }
        for (rank, own) in members.iter().enumerate() {
            let columns = |buffer: &Buffer<f32>, first: usize, width: usize| Rows {
                address: buffer.as_ref().address() + 4 * first as u64,
                rows,
                bytes: 24,
                pitch: 4 * width,
            };
            let pair = [columns(&from[rank], 2, from_width), columns(&to[1 - rank], 4, to_width)];
            both(own, exchange, Phase::Ready, turn).expect("a signal");
            // SAFETY: both matrices have these columns and live until the end; the other rank is ready.
            unsafe { own.peers.copy(&own.stream, &pair[0], &pair[1]) }.expect("a copy");
            both(own, exchange, Phase::Done, turn).expect("a signal");
        }
        for (rank, own) in members.iter().enumerate() {
            let came = to[rank].to_host(&own.stream).expect("the result");
            for (row, came) in came.chunks(to_width).enumerate() {
                let wanted: Vec<f32> = (0..6).map(|at| number(1 - rank, from_width * row + 2 + at)).collect();
                assert_eq!(came[4..10], wanted, "turn {turn}, row {row}");
                assert_eq!([&came[..4], &came[10..]].concat(), [0.0; 6]);
            }
        }
    }
}

#[test]
fn sums_are_the_same_on_all_ranks() {
    let Some(members) = members() else { return };
    let sum = members.each_ref().map(|own| Sum::new(own.stream.device(), 2).expect("a compiler"));
    for len in [1, 3, 4, 1000, 100_003] {
        let values =
            [0, 1].map(|rank: usize| (0..len).map(|at| (at * (rank + 1)) as f32).collect::<Vec<_>>());
        let buffers = [0, 1]
            .map(|rank: usize| Buffer::from_host(&members[rank].stream, &values[rank]).expect("memory"));
        let addresses = buffers.each_ref().map(|own| own.as_ref().address());
        let exchange = members.each_ref().map(|own| own.peers.new_exchange().expect("an exchange"))[0];
        for (rank, own) in members.iter().enumerate() {
            both(own, exchange, Phase::Ready, 1).expect("a signal");
            // SAFETY: the buffers live until the end, and both ranks are ready.
            unsafe { sum[rank].run(&own.stream, &addresses, len, rank) }.expect("a launch");
            both(own, exchange, Phase::Done, 1).expect("a signal");
        }
        let wanted: Vec<f32> = (0..len).map(|at| (3 * at) as f32).collect();
        for (own, buffer) in members.iter().zip(&buffers) {
            assert_eq!(buffer.to_host(&own.stream).expect("the sums"), wanted, "{len}");
        }
    }
}

#[test]
fn an_aborted_group_waits_for_no_one() {
    let Some([one, _other]) = members() else { return };
    let exchange = one.peers.new_exchange().expect("an exchange");
    one.peers.wait(&one.stream, 1, (exchange, Phase::Done), 1).expect("a wait");
    one.peers.abort();
    one.stream.synchronize().expect("the end of the wait");
    let refused = one.peers.signal(&one.stream, 1, (exchange, Phase::Ready), 1);
    assert!(matches!(refused, Err(Error::Aborted)), "{refused:?}");
}
