// Applies manifests with the library that Flux applies with, and prunes what they no longer hold.
//
// The calls and options are those of kustomize-controller: normalize, label, ApplyAllStaged with four checks at once,
// then DeleteAll of what the inventory has and the manifests have not. The inventory is a file here, where the
// controller writes it into the status of a Kustomization. What else the controller does is left out: fetching,
// `kustomize build`, status, events and health checks. So Flux itself costs more than this.
//
//	staged KUBECONFIG MANIFESTS INVENTORY
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	manager = "kustomize-controller"
	group   = "kustomize.toolkit.fluxcd.io"
	// The controller's default.
	checksAtOnce = 4
)

// What the inventory keeps of an object.
type entry struct {
	Group, Version, Kind, Namespace, Name string
}

func main() {
	if len(os.Args) != 4 {
		fail(errors.New("usage: staged KUBECONFIG MANIFESTS INVENTORY"))
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fail(err)
	}
}

func run(kubeconfig, manifests, inventory string) error {
	ctx := context.Background()
	resources, err := newManager(kubeconfig)
	if err != nil {
		return err
	}
	objects, err := read(manifests)
	if err != nil {
		return err
	}
	before, err := load(inventory)
	if err != nil {
		return err
	}
	resources.SetOwnerLabels(objects, "bench", "default")
	if err := normalize.UnstructuredList(objects); err != nil {
		return err
	}
	if _, err := resources.ApplyAllStaged(ctx, objects, options()); err != nil {
		return err
	}
	now := entries(objects)
	if stale := missing(before, now); len(stale) > 0 {
		if _, err := resources.DeleteAll(ctx, stale, deletion(resources)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return os.WriteFile(inventory, text, 0o600)
}

func newManager(kubeconfig string) (*ssa.ResourceManager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// As the controller's client where the API server does its own rationing.
	config.QPS, config.Burst = -1, -1
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, web)
	if err != nil {
		return nil, err
	}
	kube, err := client.New(config, client.Options{HTTPClient: web, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	poller := polling.NewStatusPoller(kube, mapper, polling.Options{})
	resources := ssa.NewResourceManager(kube, poller, ssa.Owner{Field: manager, Group: group})
	resources.SetConcurrency(checksAtOnce)
	return resources, nil
}

func read(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return utils.ReadObjects(bufio.NewReader(file))
}

func options() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{group + "/reconcile": "disabled", group + "/ssa": "Ignore"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	options.ForceSelector = map[string]string{group + "/force": "enabled"}
	update, apply := metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation, group + "/checksum", "fluxcd.io/sync-checksum"},
		Labels:      []string{"fluxcd.io/sync-gc-mark"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: apply},
			{Name: "kubectl", OperationType: update},
			{Name: "before-first-apply", OperationType: update},
			{Name: manager, OperationType: update},
		},
		Exclusions: map[string]string{group + "/ssa": "Merge"},
	}
	return options
}

func deletion(resources *ssa.ResourceManager) ssa.DeleteOptions {
	options := ssa.DefaultDeleteOptions()
	options.Inclusions = resources.GetOwnerLabels("bench", "default")
	options.Exclusions = map[string]string{group + "/prune": "disabled", group + "/reconcile": "disabled"}
	return options
}

func load(path string) ([]entry, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []entry
	return found, json.Unmarshal(text, &found)
}

func entries(objects []*unstructured.Unstructured) []entry {
	var all []entry
	for _, object := range objects {
		kind := object.GroupVersionKind()
		all = append(all, entry{kind.Group, kind.Version, kind.Kind, object.GetNamespace(), object.GetName()})
	}
	return all
}

// Returns what was there before and is not wanted any more.
func missing(before, now []entry) []*unstructured.Unstructured {
	wanted := map[entry]bool{}
	for _, entry := range now {
		wanted[entry] = true
	}
	var stale []*unstructured.Unstructured
	for _, entry := range before {
		if wanted[entry] {
			continue
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind})
		object.SetNamespace(entry.Namespace)
		object.SetName(entry.Name)
		stale = append(stale, object)
	}
	return stale
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "staged:", err)
	os.Exit(1)
}
