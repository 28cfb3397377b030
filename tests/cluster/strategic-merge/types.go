package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
)

// kinds are those that patches are known for, by API version and kind.
var kinds = map[string]any{
	"apps/v1.DaemonSet":                               apps.DaemonSet{},
	"apps/v1.Deployment":                              apps.Deployment{},
	"apps/v1.StatefulSet":                             apps.StatefulSet{},
	"autoscaling/v2.HorizontalPodAutoscaler":          autoscaling.HorizontalPodAutoscaler{},
	"networking.k8s.io/v1.Ingress":                    networking.Ingress{},
	"networking.k8s.io/v1.NetworkPolicy":              networking.NetworkPolicy{},
	"policy/v1.PodDisruptionBudget":                   policy.PodDisruptionBudget{},
	"rbac.authorization.k8s.io/v1.ClusterRole":        rbac.ClusterRole{},
	"rbac.authorization.k8s.io/v1.ClusterRoleBinding": rbac.ClusterRoleBinding{},
	"rbac.authorization.k8s.io/v1.Role":               rbac.Role{},
	"rbac.authorization.k8s.io/v1.RoleBinding":        rbac.RoleBinding{},
	"v1.ConfigMap":                                    core.ConfigMap{},
	"v1.Pod":                                          core.Pod{},
	"v1.Secret":                                       core.Secret{},
	"v1.Service":                                      core.Service{},
	"v1.ServiceAccount":                               core.ServiceAccount{},
}

// apiVersions of packages whose path does not end in them.
var apiVersions = map[string]string{
	"core/v1":       "v1",
	"networking/v1": "networking.k8s.io/v1",
	"rbac/v1":       "rbac.authorization.k8s.io/v1",
}

const preamble = `# What Kubernetes' API types say about strategic merge patches: every type that a kind which can be patched leads to.
# Written by the program that the test strategic_merge compares with; see there how to write it again.
#
# Below each type stand its fields: name, what the field holds, patch strategies, merge key.
# A type stands for itself, [] for a list, * for what may be absent by type, nothing for text, numbers and free maps.
`

// printTypes walks through all types that kinds lead to.
func printTypes() error {
	found := map[string]reflect.Type{}
	for _, object := range kinds {
		collect(reflect.TypeOf(object), found)
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprint(out, preamble)
	for _, name := range names {
		fmt.Fprintf(out, "\n%s\n", name)
		for _, field := range fields(found[name]) {
			fmt.Fprintln(out, strings.TrimRight("  "+field.line(), " "))
		}
	}
	return out.Flush()
}

func collect(t reflect.Type, found map[string]reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if _, known := found[typeName(t)]; known || t.Kind() != reflect.Struct {
		return
	}
	found[typeName(t)] = t
	for _, field := range fields(t) {
		collect(field.holds, found)
	}
}

type field struct {
	name  string
	holds reflect.Type
	tag   reflect.StructTag
}

// fields are those that JSON knows, in the order of the type, with those of embedded types in their place.
func fields(t reflect.Type) []field {
	var found []field
	for i := range t.NumField() {
		member := t.Field(i)
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && member.Anonymous && member.Type.Kind() == reflect.Struct:
			found = append(found, fields(member.Type)...)
		case !member.IsExported():
		case name == "":
			found = append(found, field{member.Name, member.Type, member.Tag})
		default:
			found = append(found, field{name, member.Type, member.Tag})
		}
	}
	return found
}

func (f field) line() string {
	columns := []string{f.name, shape(f.holds), f.tag.Get("patchStrategy"), f.tag.Get("patchMergeKey")}
	if columns[1] == "" && columns[2] != "" {
		columns[1] = "-"
	}
	return strings.Join(slices.DeleteFunc(columns, func(column string) bool { return column == "" }), " ")
}

func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + shape(t.Elem())
	case reflect.Slice:
		return "[]" + shape(t.Elem())
	case reflect.Struct:
		return typeName(t)
	default:
		return ""
	}
}

func typeName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	last := strings.Join(parts[max(0, len(parts)-2):], "/")
	if version, known := apiVersions[last]; known {
		last = version
	}
	return last + "." + t.Name()
}
