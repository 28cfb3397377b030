//! Gateways whose class is somebody else's, or has become that.

use crate::errors::{desk, folder, gateway};
use crate::guards::token;

/// A spec that still stands in the source is not withdrawn because nothing is rendered of it any more.
#[test]
fn a_gateway_whose_class_is_somebody_elses_now_keeps_what_it_has() {
    let class = |controller: &str| {
        format!(
            "{{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {{name: public}}, \
             spec: {{controllerName: {controller}}}}}"
        )
    };
    for more in ["", "\n    unclaimed: apply"] {
        let desk = desk("edges", &[("fine", folder())]);
        desk.replace("gatewright.yaml", "createNamespaces: true", &format!("createNamespaces: true{more}"));
        desk.write("specs/class.yaml", &class("kgateway.dev/kgateway"));
        desk.write("specs/a.yaml", &gateway("shop", "a", 8080).replace("kgateway\n", "public\n"));
        desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
        desk.run(&["sync"]).exits(0);
        let before = desk.read("rendered/shop/service-a.yaml");

        // A slip is a mistake, which holds the Gateway as it is.
        desk.write("specs/class.yaml", &class("kgateway.dev/kgatewy"));
        let slip = desk.run(&["sync"]).exits(1).says("did you mean \"kgateway.dev/kgateway\"?");
        slip.says("class.yaml:1: ");
        assert_eq!(desk.read("rendered/shop/service-a.yaml"), before);

        // Another controller may be meant, and then a person says so.
        desk.write("specs/class.yaml", &class("example.com/other"));
        let held = desk.run(&["sync"]).exits(3).says("Gateway shop/a is held by guard withdrawal");
        let held =
            held.says("the controller \"example.com/other\" of its class is one for which no pack renders anything");
        assert_eq!(desk.read("rendered/shop/service-a.yaml"), before);
        desk.run(&["approve", &token(&held)]).exits(0);
        desk.run(&["sync"]).exits(0).says("4 objects deleted");
        assert!(
            !desk.path("rendered/shop/service-a.yaml").exists() && desk.path("rendered/shop/service-b.yaml").exists()
        );
    }
}

#[test]
fn a_gateway_of_a_controller_that_makes_its_own_class_is_left_to_it() {
    let desk = desk("edges", &[("fine", folder())]);
    desk.write("specs/mesh.yaml", &gateway("shop", "mesh", 8080).replace("kgateway\n", "istio\n"));
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080));
    desk.run(&["check", "specs"]).exits(0);
    desk.run(&["sync"]).exits(0).says("4 objects created").says("Gateway shop/mesh");
    desk.write("specs/b.yaml", &gateway("shop", "b", 8080).replace("kgateway\n", "istio\n"));
    desk.run(&["sync"]).exits(3);
    assert!(desk.path("rendered/shop/service-b.yaml").exists());
}
