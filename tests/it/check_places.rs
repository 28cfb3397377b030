//! Places: what is wrong in a value that goes into a pod is told at the line on which somebody has written it, whatever the
//! field is called there.

use crate::program::Desk;

/// Every line that is wrong ends with a part of what is said of it.
const PARAMETERS: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: edge}
spec:
  controllerName: kgateway.dev/kgateway
  parametersRef: {group: gateway.kgateway.dev, kind: GatewayParameters, name: edge, namespace: infra}
---
apiVersion: gateway.kgateway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: edge, namespace: infra}
spec:
  kube:
    podTemplate:
      extraVolumes:
        - name: Bad_Name # ! the name of a volume is \"Bad_Name\"
          emptyDir: {}
      readinessProbe:
        failureThreshold: -1 # ! failureThreshold of readinessProbe is less than 0
        httpGet:
          port: 99999 # ! port is 99999
      securityContext:
        fsGroup: -1 # ! fsGroup is -1
      tolerations:
        - {key: a, operator: Foo} # ! operator is \"Foo\"
    envoyContainer:
      image:
        pullPolicy: Sometimes # ! imagePullPolicy is \"Sometimes\"
      securityContext:
        runAsUser: -5 # ! runAsUser is -5
      extraVolumeMounts:
        - name: nothere # ! mounts the volume \"nothere\"
          mountPath: /x
      resources:
        requests: {cpu: 2}
        limits: {cpu: 1} # ! more than its limit 1
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: edge
  listeners: [{name: http, port: 80, protocol: HTTP}]
";

#[test]
fn what_is_wrong_in_parameters_is_told_at_its_line() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", "stateDir: ./state\n");
    desk.write("specs/edge.yaml", PARAMETERS);
    let run = desk.run(&["check", "specs"]).exits(1);
    let said: Vec<&str> = run.err.lines().filter(|line| line.starts_with("specs/edge.yaml:")).collect();
    let wrong =
        PARAMETERS.lines().enumerate().filter_map(|(index, line)| Some((index + 1, line.split_once(" # ! ")?.1)));
    for (line, text) in wrong {
        let place = format!("specs/edge.yaml:{line}:");
        assert!(said.iter().any(|it| it.starts_with(&place) && it.contains(text)), "{place} {text}: {said:#?}");
    }
    assert_eq!(said.len(), PARAMETERS.matches(" # ! ").count(), "{said:#?}");
}
