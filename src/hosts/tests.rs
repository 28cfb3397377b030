//! Hosts in simulated time: what they hold whatever happens to them.

mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::Rng as _;
use tokio::time::sleep;

use super::fence::Held;
use super::membership::Membership;
use super::view::{Kind, View, preferred};
use super::{Command, Former, IDENTITY};
use crate::basics::clock::{Boot, Clock, SimulatedClock};
use crate::cluster::leases::Lease;
use crate::state::State;
use world::{LEASE, World};

fn simulate(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn no_sync_is_ever_looked_after_by_two_hosts_and_none_stays_alone() {
    for seed in 0..60 {
        simulate(async {
            let mut world = World::new(seed, 3);
            (0..3).for_each(|index| world.start(index));
            for _ in 0..40 {
                let time = Duration::from_millis(world.random.random_range(100..9_000));
                world.pass(time).await;
                world.happen();
            }
            world.heal();
            world.pass(LEASE * 4).await;
            // Slow answers may cost a Lease now and then, but not for long.
            for _ in 0..30 {
                if !world.unowned().is_empty() {
                    world.pass(Duration::from_secs(1)).await;
                }
            }
            assert_eq!(world.unowned(), Vec::<&String>::new(), "seed {seed}");
        });
    }
}

#[test]
fn what_a_host_had_that_dies_or_is_frozen_or_cut_off_is_anothers_within_two_lease_durations() {
    let ends: [fn(&mut World, usize); 3] = [
        World::kill,
        |world, index| world.hosts[index].is_frozen.store(true, Ordering::Relaxed),
        |world, index| world.hosts[index].is_cut.store(true, Ordering::Relaxed),
    ];
    for (seed, end) in (100..).zip(ends) {
        simulate(async {
            let mut world = World::new(seed, 3);
            (0..3).for_each(|index| world.start(index));
            world.pass(LEASE * 4).await;
            let had: Vec<String> = world.syncs.iter().filter(|it| world.holders(it) == ["host-0"]).cloned().collect();
            assert!(!had.is_empty() && world.unowned().is_empty(), "each host has its share: {had:?}");
            end(&mut world, 0);
            world.pass(LEASE * 2).await;
            assert!(had.iter().all(|sync| world.holders(sync).iter().any(|host| *host != "host-0")), "{end:?}");
        });
    }
}

#[test]
fn a_host_that_comes_gets_its_share_and_one_that_is_started_again_does_not_wait() {
    simulate(async {
        let mut world = World::new(7, 2);
        world.start(0);
        world.pass(LEASE * 3).await;
        assert!(world.syncs.iter().all(|sync| world.holders(sync) == ["host-0"]), "there is no other");
        world.start(1);
        world.pass(LEASE * 4).await;
        let moved = world.syncs.iter().filter(|sync| world.holders(sync) == ["host-1"]).count();
        assert!(moved > 0 && world.unowned().is_empty(), "{moved}");
        world.kill(1);
        world.start(1);
        world.pass(LEASE * 19 / 20).await;
        assert!(world.unowned().is_empty(), "the state directory says that the last one has ended");
    });
}

/// Returns a command at work beside the hosts, with its state.
fn command(world: &mut World) -> (State, Command) {
    let state = State::open(world.folder.path().join("by-hand")).noting();
    state.write("installation", b"00000000000000000000000000000000").expect("it can be written");
    let terms = world.terms("laptop", &Arc::default());
    let command = Command::new(Membership::new(terms, Kind::Command, None), world.store(&state));
    (state, command)
}

#[test]
fn a_command_gets_what_it_asks_for_and_gives_it_back() {
    simulate(async {
        let mut world = World::new(9, 2);
        (0..2).for_each(|index| world.start(index));
        world.pass(LEASE * 4).await;
        let (_, command) = command(&mut world);
        let mut told = String::new();
        let held = command.hold("sync-1", |host| host.clone_into(&mut told)).await;
        held.expect("it is given");
        assert!(told.starts_with("host-"), "{told}");
        assert_eq!(world.holders("sync-1"), Vec::<&str>::new());
        command.fence("sync-1").pass("change something").await.expect("it holds the sync");
        command.fence("sync-2").pass("change something").await.expect_err("it does not hold this one");
        command.leave().await;
        command.fence("sync-1").pass("change something").await.expect_err("it has given it back");
        world.pass(LEASE).await;
        assert_eq!(world.holders("sync-1").len(), 1);
    });
}

#[test]
fn a_command_gives_each_sync_back_when_its_rounds_are_over() {
    simulate(async {
        let mut world = World::new(11, 2);
        (0..2).for_each(|index| world.start(index));
        world.pass(LEASE * 4).await;
        let (state, command) = command(&mut world);
        let work = async {
            for sync in ["sync-1", "sync-2"] {
                command.hold(sync, |_| ()).await.expect("it is given");
            }
            let file = "rollouts/sync-1.json";
            state.write(file, b"{}").expect("it can be written");
            command.give_back(|sync| sync == "sync-1").await;
            command.fence("sync-1").pass("change something").await.expect_err("it has given it back");
            world.pass(LEASE).await;
            let [host] = world.holders("sync-1")[..] else { return false };
            let host = world.hosts.iter().find(|it| it.name == host).expect("it is there");
            assert!(host.state.path(file).exists(), "it knows what the command has written");
            assert_eq!(world.holders("sync-2"), Vec::<&str>::new());
            command.fence("sync-2").pass("change something").await.expect("it holds this one");
            true
        };
        let is_back = tokio::select! {
            is_back = work => is_back,
            () = command.keep() => false,
        };
        assert!(is_back, "one host has it again");
        command.hold("sync-1", |_| ()).await.expect("it can be had again");
        command.leave().await;
        world.pass(LEASE).await;
        assert_eq!([world.holders("sync-1").len(), world.holders("sync-2").len()], [1, 1]);
    });
}

#[test]
fn a_host_that_has_lost_the_store_gives_its_syncs_to_those_who_reach_it() {
    simulate(async {
        let mut world = World::new(3, 2);
        (0..2).for_each(|index| world.start(index));
        world.pass(LEASE * 4).await;
        let had: Vec<String> = world.syncs.iter().filter(|it| world.holders(it) == ["host-0"]).cloned().collect();
        assert!(!had.is_empty(), "each host has its share");
        // What it would have to say to others cannot be compared any more.
        let lock = world.hosts[0].state.path("shared.lock");
        std::fs::remove_file(&lock).expect("it is there");
        std::fs::create_dir(&lock).expect("a test may");
        world.pass(LEASE * 6).await;
        assert!(world.syncs.iter().all(|sync| world.holders(sync) == ["host-1"]), "{had:?}");
        std::fs::remove_dir(&lock).expect("it is there");
        world.pass(LEASE * 6).await;
        assert!(had.iter().all(|sync| world.holders(sync) == ["host-0"]), "it has its share again");
    });
}

#[test]
fn a_lease_that_is_deleted_makes_nothing_free_and_one_that_lasts_for_ever_does() {
    let lease = |name: &str, holder: &str, renewed: i64, seconds: i32| Lease {
        name: name.to_owned(),
        holder: holder.to_owned(),
        renewed: Timestamp::from_second(renewed).ok(),
        seconds,
        ..Lease::default()
    };
    let (member, sync) = (lease("g.host.a", "a_1", 1, 6), lease("g.sync.red", "a_1", 1, 6));
    let mut view = View::default();
    view.look("g", vec![member.clone(), sync], Duration::from_secs(10));
    // Both are deleted while the host lives, which cannot know it yet.
    view.look("g", vec![], Duration::from_secs(11));
    assert_eq!(view.holder("red"), "a_1");
    assert!(view.is_live("a_1", Duration::from_secs(15)) && !view.is_live("a_1", Duration::from_secs(16)));
    // Somebody has written what no host would.
    view.look("g", vec![lease("g.sync.red", "nobody", 1, i32::MAX)], Duration::from_secs(20));
    assert!(!view.is_live("nobody", Duration::from_secs(20 + 600)));
}

#[test]
fn the_lease_of_who_has_been_dead_for_a_day_is_deleted_and_no_other() {
    simulate(async {
        let mut world = World::new(5, 0);
        let lease = |name: &str, holder: &str, renewed: i64| Lease {
            name: format!("test.{name}"),
            holder: holder.to_owned(),
            renewed: Timestamp::from_second(renewed).ok(),
            seconds: 6,
            ..Lease::default()
        };
        for (name, holder) in
            [("command.1", "c_1"), ("host.old", "old_1"), ("host.named", "named_1"), ("host.a", "a_1")]
        {
            world.puts(lease(name, holder, 1));
        }
        world.puts(lease("sync.red", "named_1", 1));
        let mut membership = Membership::new(world.terms("host-0", &Arc::default()), Kind::Host, None);
        membership.look().await.expect("it answers");
        for (hours, expected) in [(23, 5), (2, 4), (0, 3), (0, 3)] {
            sleep(Duration::from_hours(hours)).await;
            // One has lived all the time, by a clock that is wrong; the others say nothing.
            world.puts(lease("host.a", "a_1", -hours.cast_signed()));
            membership.look().await.expect("it answers");
            membership.tidy().await;
            let left = world.puts(lease("host.a", "a_1", -100));
            assert_eq!(left.len(), expected, "{left:?}");
        }
        let left = world.puts(lease("host.a", "a_1", 1));
        assert_eq!(left, ["test.host.a", "test.host.named", "test.sync.red"].map(str::to_owned).into());
        // It is renewed after it was seen for the last time.
        world.puts(lease("host.old", "old_2", 1));
        membership.look().await.expect("it answers");
        sleep(Duration::from_hours(25)).await;
        world.puts(lease("host.old", "old_2", 2));
        membership.tidy().await;
        assert!(world.puts(lease("host.a", "a_1", 2)).contains("test.host.old"));
    });
}

#[test]
fn only_the_last_daemon_in_this_very_folder_is_known_to_have_ended() {
    struct Named(&'static str);
    impl Clock for Named {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
        fn boot(&self) -> Option<Boot> {
            Some(Boot { id: self.0.to_owned(), up: SignedDuration::from_secs(9) })
        }
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let state = State::open(folder.path().join("state"));
    let _lock = state.lock().expect("nobody has it");
    let this = Former::this("a_1", &state, &Named("one")).expect("it can be described");
    IDENTITY.write(&state, &[], &this).expect("it can be written");
    let ended = |state: &State, boot| Former::ended(state, &Named(boot));
    assert_eq!(ended(&state, "one").as_deref(), Some("a_1"));
    assert_eq!(ended(&state, "two"), None, "the machine was started again, or is another one");
    assert_eq!(ended(&state, ""), None, "nothing is known of that");
    let copy = State::open(folder.path().join("copy"));
    let _copied = copy.lock().expect("nobody has it");
    IDENTITY.write(&copy, &[], &this).expect("it can be written");
    assert_eq!(ended(&copy, "one"), None, "the one that it was copied from may live");
}

#[test]
fn only_the_syncs_move_of_a_host_that_goes() {
    let names: Vec<String> = (0..5).map(|index| format!("host-{index}")).collect();
    let syncs: Vec<String> = (0..200).map(|index| format!("sync-{index}")).collect();
    let lease = |name: &String| Lease {
        name: Kind::Host.lease("test", name),
        holder: format!("{name}_1"),
        seconds: 6,
        annotations: [(super::view::SYNCS.to_owned(), syncs.join(" "))].into(),
        ..Lease::default()
    };
    let chosen = |names: &[String]| -> Vec<String> {
        let mut view = View::default();
        view.look("test", names.iter().map(lease).collect(), Duration::ZERO);
        let hosts = view.hosts("test", Duration::ZERO);
        syncs.iter().map(|sync| preferred(sync, &hosts).expect("there is one").to_owned()).collect()
    };
    let (all, without) = (chosen(&names), chosen(&names[1..]));
    for name in &names {
        let share = all.iter().filter(|it| it.starts_with(name.as_str())).count();
        assert!((20..60).contains(&share), "{name} has {share} of 200");
    }
    let moved = all.iter().zip(&without).filter(|(before, after)| before != after);
    assert!(moved.clone().all(|(before, _)| before.starts_with("host-0_")) && moved.count() > 0);
}

#[test]
fn a_right_ends_before_others_believe_that_its_host_is_dead() {
    simulate(async {
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::starting_at(Timestamp::UNIX_EPOCH));
        let held = Held::new(&clock);
        held.add("edge");
        assert!(!held.holds("edge"), "its Lease was never renewed");
        held.renewed(clock.uptime(), LEASE);
        assert!(!held.holds("edge"), "it has not looked who holds what");
        held.looked(clock.uptime());
        assert!(held.holds("edge") && !held.holds("shop"));
        sleep(LEASE * 3 / 5).await;
        assert!(held.holds("edge"));
        sleep(LEASE / 12).await;
        assert!(!held.holds("edge"));
    });
}
