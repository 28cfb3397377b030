use serde_json::json;

use super::*;
use crate::kinds::name::KindName;
use crate::plan::recreate::Immutable;
use crate::plan::tests::policies;
use crate::problem::Place;

fn service(fields: &Value) -> Object {
    let mut body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge", "namespace": "infra"}});
    body["spec"] = fields.clone();
    Object::new(body).expect("it is an object")
}

/// The live Service, with a field that somebody has added by hand.
fn live() -> Live {
    let mut body = service(&json!({"a": 1, "b": 2})).into_body();
    let entry = |manager: &str, operation: &str, field: &str| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {field: {}}},
        })
    };
    let entries = [entry("gatewright", "Apply", "f:a"), entry("kubectl-edit", "Update", "f:b")];
    body["metadata"]["managedFields"] = entries.into_iter().collect();
    body["metadata"]["uid"] = json!("u");
    body["metadata"]["resourceVersion"] = json!("1");
    Live::new(body).expect("it is an object")
}

/// A Service that is wanted, and what was seen of it.
struct World {
    units: Vec<Unit>,
    observed: Observed,
    policies: Policies,
    purpose: Purpose,
}

fn world(purpose: Purpose, live: Option<Live>) -> World {
    let id = ObjectId::new("gateway.networking.k8s.io", "Gateway", "infra", "edge");
    let unit = Unit { objects: vec![service(&json!({"a": 1}))], ..Unit::empty(id, Place::file("edge.yaml")) };
    let live = live.into_iter().map(|live| (live.object.id().clone(), live)).collect();
    let observed = Observed { live, ..Observed::default() };
    World { units: vec![unit], observed, policies: policies(), purpose }
}

impl World {
    fn open(&self) -> Vec<Question> {
        questions(&self.units, &self.observed, &self.policies, self.purpose)
    }

    /// Answers all that is open, and says what that was.
    fn answer(&mut self, answer: &Result<Live, Obstacle>) -> Vec<String> {
        let open = self.open();
        let words = open.iter().map(|question| match &question.request {
            Request::Apply(object, None) => format!("create {}", object.id().name),
            Request::Apply(object, Some(over)) => format!("apply {} over {}", object.id().name, over.resource_version),
            Request::Patch(_, over) => format!("patch over {}", over.resource_version),
        });
        let words = words.collect();
        let is_stale = matches!(answer, Err(Obstacle::Stale(_)));
        for question in open {
            let is_stand_in = question.stage == Stage::StandIn;
            assert_eq!(self.observed.answer(question, answer.clone()), is_stale && !is_stand_in);
        }
        words
    }

    fn immutable(&mut self) -> Vec<String> {
        let fields = vec!["spec.a".to_owned()];
        let immutable = Immutable { fields, message: "no".to_owned(), instead: None };
        self.answer(&Err(Obstacle::Immutable(Box::new(immutable))))
    }
}

#[test]
fn what_is_to_be_made_is_tried_only_for_a_plan() {
    assert_eq!(world(Purpose::Plan, None).answer(&Ok(live())), ["create edge"]);
    for purpose in [Purpose::Apply, Purpose::Report] {
        assert_eq!(world(purpose, None).answer(&Ok(live())), [""; 0], "{purpose:?}");
    }
    let mut world = world(Purpose::Plan, None);
    world.observed.namespaces.insert("infra".to_owned(), NamespaceState::Absent);
    assert_eq!(world.answer(&Ok(live())), [""; 0], "there is no namespace to try it in");
}

#[test]
fn where_owners_change_first_the_content_is_tried_once_more() {
    for refused in [Ok(live()), Err(Obstacle::Invalid("no".to_owned()))] {
        let mut world = world(Purpose::Apply, Some(live()));
        assert_eq!(world.answer(&refused), ["apply edge over 1"]);
        assert_eq!(world.answer(&Ok(live())), ["patch over 1"]);
        assert_eq!(world.answer(&Ok(live())), [""; 0], "and no more");
    }
    let mut world = world(Purpose::Apply, Some(live()));
    world.units[0].objects = vec![live().object.without_metadata("managedFields")];
    assert_eq!(world.answer(&Ok(live())), ["apply edge over 1"]);
    assert_eq!(world.answer(&Ok(live())), [""; 0], "everybody wants the same");
}

#[test]
fn what_was_negotiated_for_a_dry_run_is_planned() {
    let mut world = world(Purpose::Apply, Some(live()));
    let (unit, wanted, live) = (world.units[0].clone(), service(&json!({"a": 1})), live());
    world.answer(&Ok(live.clone()));
    world.answer(&Ok(live.clone()));
    let of = |wanted: &Object| world.observed.agreed(&unit, wanted, &live, &world.policies).expect("nobody objects");
    assert!(matches!(of(&wanted), Cow::Borrowed(agreed) if !agreed.first.is_empty()));
    assert!(matches!(of(&service(&json!({"a": 2}))), Cow::Owned(_)), "something else is wanted by now");
}

#[test]
fn an_object_that_somebody_keeps_changing_is_tried_four_times() {
    let mut world = world(Purpose::Apply, Some(live()));
    let stale = Err(Obstacle::Stale("another version".to_owned()));
    for _ in 0..TRIES {
        assert_eq!(world.answer(&stale), ["apply edge over 1"]);
    }
    assert_eq!(world.answer(&stale), [""; 0]);
}

#[test]
fn what_cannot_be_changed_is_tried_under_another_name_if_it_may_be_replaced() {
    let mut world =
        world(Purpose::Apply, Some(Live { object: live().object.without_metadata("managedFields"), ..live() }));
    assert_eq!(world.immutable(), ["apply edge over 1"]);
    assert_eq!(world.immutable(), [""; 0], "nobody has consented");
    world.policies.recreate = [KindName::read("Service")].into();
    world.purpose = Purpose::Report;
    assert_eq!(world.immutable(), [""; 0], "a report replaces nothing");
    world.purpose = Purpose::Apply;
    let create = world.answer(&Err(Obstacle::Stale("it exists".to_owned())));
    assert!(matches!(&create[..], [create] if create.starts_with("create edge-gw-")), "{create:?}");
    let run = world.observed.dry_runs.values().next().expect("it was tried");
    let instead = if let Err(Obstacle::Immutable(immutable)) = &run.result { immutable.instead.clone() } else { None };
    assert_eq!(instead, Some(Err("it exists".to_owned())));
    assert_eq!(world.answer(&Ok(live())), [""; 0], "and no more");
}

#[test]
fn what_is_known_or_may_not_be_asked_is_not_asked() {
    let id = live().object.id().clone();
    let check = |change: &dyn Fn(&mut World)| {
        let mut world = world(Purpose::Apply, Some(live()));
        change(&mut world);
        assert_eq!(world.answer(&Ok(live())), [""; 0]);
    };
    check(&|world| assert!(world.observed.unchanged.insert(id.clone())));
    check(&|world| assert!(world.observed.unasked.insert(id.clone())));
    check(&|world| drop(world.observed.unknown.insert(id.clone(), "no right to read it".to_owned())));
    let without_kind = || Obstacle::NoSuchKind("v1/Service".to_owned()).into();
    check(&|world| drop(world.observed.dry_runs.insert(id.clone(), without_kind())));
    check(&|world| world.policies.only = Some([].into()));
}
