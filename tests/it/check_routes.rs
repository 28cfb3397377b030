//! Routes beside the Gateways and Services of their source: each line of what is right says nothing, each that is wrong says
//! its rule.

use gatewright::config::packs::{build, folders};
use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};

/// Two Gateways, a listener set, Services, and who may refer to what.
const SOURCE: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: kgateway
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: open, port: 80, protocol: HTTP, hostname: '*.example.com', allowedRoutes: {namespaces: {from: All}}}
  - {name: own, port: 8080, protocol: HTTP, hostname: own.example.org}
  - {name: shops, port: 8443, protocol: HTTP, hostname: shops.example.net, allowedRoutes: {namespaces: {from: Selector,
     selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}}}
  - {name: tcp, port: 9000, protocol: TCP, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: shop}
spec:
  parentRef: {name: edge, namespace: infra}
  listeners: [{name: extra, port: 8081, protocol: HTTP}]
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec: {selector: {app: shop}, ports: [{port: 80, name: http}, {port: 53, name: a, protocol: TCP}]}
---
apiVersion: v1
kind: Service
metadata: {name: store, namespace: other}
spec: {selector: {app: store}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: hidden, namespace: other}
spec: {selector: {app: hidden}, ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: g, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: '', kind: Service, name: store}]
";

const BACKEND: &str = "backendRefs: [{name: shop, port: 80}]";

/// Parts of the spec of a route in namespace `shop`, beside its rules, each with what is said of it.
const PARENTS: [(&str, &str); 24] = [
    ("parentRefs: [{name: edge, namespace: infra}]", ""),
    ("parentRefs: [{name: edge, namespace: infra, sectionName: open, port: 80}], hostnames: [a.b.example.com]", ""),
    ("parentRefs: [{name: edge, namespace: infra}], hostnames: ['*.com', nowhere.test]", ""),
    ("parentRefs: [{name: edge, namespace: infra}], hostnames: [SHOPS.example.net]", ""),
    ("parentRefs: [{name: more, kind: ListenerSet, sectionName: extra}]", ""),
    ("parentRefs: [{name: mesh, kind: Service, group: ''}]", ""),
    ("parentRefs: [{name: any, kind: Waypoint, group: mesh.example.com}]", ""),
    ("parentRefs: [{name: more, kind: XListenerSet, group: gateway.networking.x-k8s.io}]", ""),
    ("parentRefs: [{name: elsewhere, namespace: infra}]", ""),
    ("parentRefs: [{name: edge-v2, namespace: infra}]", ""),
    ("parentRefs: [{name: edge, namespace: cluster}]", ""),
    ("{}", ""),
    ("parentRefs: [{name: edge, namespace: infra, sectionName: opne}]", "GW043"),
    ("parentRefs: [{name: edge, namespace: infra, port: 81}]", "GW043"),
    ("parentRefs: [{name: edge, namespace: infra, sectionName: open, port: 8080}]", "GW043"),
    ("parentRefs: [{name: edgf, namespace: infra}]", "GW043"),
    ("parentRefs: [{name: edge}]", "GW043"),
    ("parentRefs: [{name: edge, namespace: infra, kind: gateway}]", "GW043"),
    ("parentRefs: [{name: shop, kind: Service}]", "GW043"),
    ("parentRefs: [{name: edge, namespace: infra}], hostnames: [example.com]", "GW044"),
    ("parentRefs: [{name: edge, namespace: infra, sectionName: open}], hostnames: [a.example.org]", "GW044"),
    ("parentRefs: [{name: edge, namespace: infra, sectionName: own}]", "GW045"),
    ("parentRefs: [{name: edge, namespace: infra, sectionName: tcp}]", "GW045"),
    ("parentRefs: [{name: edge, namespace: infra}], hostnames: [own.example.org]", "GW045"),
];

/// The same of a rule.
const RULES: [(&str, &str); 16] = [
    (BACKEND, ""),
    ("backendRefs: [{name: store, namespace: other, port: 80}]", ""),
    ("backendRefs: [{name: elsewhere, port: 80}]", ""),
    ("backendRefs: [{name: shop-v2, port: 80}]", ""),
    ("backendRefs: [{name: pool, kind: InferencePool, group: inference.networking.k8s.io}]", ""),
    ("backendRefs: [{name: edge, namespace: shop, port: 99}]", ""),
    ("backendRefs: []", ""),
    ("backendRefs: [{name: shop, port: 81}]", "GW046"),
    ("backendRefs: [{name: shpo, port: 80}]", "GW046"),
    ("backendRefs: [{name: shop, port: 80, kind: Deployment}]", "GW046"),
    ("backendRefs: [{name: shop, port: 80, group: v1}]", "GW046"),
    ("backendRefs: [{name: hidden, namespace: other, port: 80}]", "GW012"),
    ("backendRefs: [{name: store, namespace: other, port: 81}]", "GW046"),
    ("filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 82}}}]", "GW046"),
    (
        "filters: [{type: RequestMirror, requestMirror: {backendRef: {name: hidden, namespace: other, port: 80}}}]",
        "GW012",
    ),
    (
        "backendRefs: [{name: shop, port: 80, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 8}}}]}]",
        "GW046",
    ),
];

fn packs() -> Packs {
    build(None, &folders(&gatewright_packs::all().into(), []).expect("there are none")).expect("they load")
}

/// The rules that are broken by a route.
fn broken(packs: &Packs, spec: &str, rule: &str, is_applied: bool) -> String {
    let spec = if spec == "{}" { String::new() } else { format!("{spec}, ") };
    let route = format!(
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r, namespace: shop}}\n\
         spec: {{{spec}rules: [{{{rule}}}]}}\n"
    );
    let tree = Tree::from_iter([("a.yaml", format!("{SOURCE}{route}"))]);
    let options = Options { is_check: true, apply_unclaimed: is_applied, ..Options::default() };
    let problems = unit::render(&tree, packs, &options).problems;
    let said: Vec<String> = problems.iter().filter_map(|problem| problem.rule.map(|rule| rule.to_string())).collect();
    said.join(",")
}

#[test]
fn a_route_says_what_it_breaks_and_nothing_else() {
    let packs = packs();
    for is_applied in [false, true] {
        for (spec, expected) in PARENTS {
            assert_eq!(broken(&packs, spec, BACKEND, is_applied), expected, "{spec}");
        }
        for (rule, expected) in RULES {
            assert_eq!(broken(&packs, PARENTS[0].0, rule, is_applied), expected, "{rule}");
        }
    }
}

/// The Service of a Gateway is rendered, and as good as one that is written.
#[test]
fn services_that_are_rendered_count() {
    let packs = packs();
    let source = SOURCE.replace("metadata: {name: g, namespace: other}", "metadata: {name: g, namespace: infra}");
    let source = source.replace("kind: Service, name: store}", "kind: Service}");
    let said = |name: &str| {
        let route = format!(
            "{source}---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r, namespace: shop}}\n\
             spec: {{rules: [{{backendRefs: [{{name: {name}, namespace: infra, port: 80}}]}}]}}\n"
        );
        let options = Options { is_check: true, ..Options::default() };
        let problems = unit::render(&Tree::from_iter([("a.yaml", route)]), &packs, &options).problems;
        problems.iter().map(ToString::to_string).collect::<String>()
    };
    assert_eq!(said("edge"), "");
    assert!(said("egde").contains("Service infra/egde, which is not in the source (did you mean \"edge\"?) [GW046]"));
}
