# A Kubernetes of several nodes on one machine, from the program that `build` makes. To be sourced by
# scripts/fleet-kubernetes, which sets $kubernetes (that program), $kubectl, $tools (Debian's etcd and
# containerd, unpacked), $images (a folder of OCI archives) and $state (a folder that is removed).
#
# There is no Docker, systemd or registry. A node is a process namespace of its own, in a network
# namespace of its own: to end its first process is to cut its power. All addresses are of
# 198.18.0.0/15, inside the namespaces; the network of the machine is not touched. The nodes share
# its cores, so that nothing here measures a fleet. Not here: what is run on the cluster.

control_address=198.18.32.1
service_range=198.19.255.0/24
# The node's kubelet sets these for the whole machine.
kubelet_sysctls=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
    kernel.keys.root_maxkeys kernel.keys.root_maxbytes)

in_control() { nsenter --net=/run/netns/plimsoll-control "$@"; }
in_node() { local number=$1; shift; nsenter --net="/run/netns/plimsoll-node$number" "$@"; }
kubectl() { in_control "$kubectl" --kubeconfig "$state/admin.conf" "$@"; }
node_address() { echo "198.18.32.1$1"; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
    local seconds=$1 what=$2 begun=$SECONDS
    shift 2
    until "$@" >/dev/null 2>&1; do
        if [ $((SECONDS - begun)) -ge "$seconds" ]; then
            echo "fleet-kubernetes: $what: not within $seconds s" >&2
            return 1
        fi
        sleep 0.5
    done
}

# begin NAME COMMAND...: in the background, with a log and its process id in $state.
begin() {
    local name=$1
    shift
    "$@" >"$state/$name.log" 2>&1 </dev/null &
    echo $! >"$state/$name.pid"
    # Without this, bash reports each process that is killed.
    disown
}

# end NAME: first politely, then at once. A number that another process has by now is left alone.
end() {
    local pid
    pid=$(cat "$state/$1.pid" 2>/dev/null) || return 0
    rm -f "$state/$1.pid"
    tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$state" || return 0
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 50); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
}

credentials() { # FILE TOKEN
    cat >"$1" <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$control_address:6443", certificate-authority: $state/ca.pem}}]
users: [{name: u, user: {token: $2}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
END
}

certificates() {
    local key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
    openssl req -x509 "${key[@]}" -days 2 -subj /CN=cluster -keyout ca.key -out ca.pem
    openssl req "${key[@]}" -subj /CN=apiserver -keyout api.key -out api.csr
    echo "subjectAltName=IP:$control_address,IP:127.0.0.1,IP:${service_range%.0/24}.1" >api.ext
    openssl x509 -req -in api.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out api.pem -extfile api.ext
    openssl genrsa -out accounts.key 2048
}

# cluster_up NODES: returns when all nodes are ready.
cluster_up() {
    local nodes=$1 number
    sysctl -e "${kubelet_sysctls[@]}" 2>/dev/null | tr -d ' ' >"$state/sysctls"
    ip netns add plimsoll-control
    in_control ip link set lo up
    in_control ip link add bridge0 type bridge
    in_control ip address add "$control_address/24" dev bridge0
    in_control ip link set bridge0 up
    in_control sysctl -qw net.ipv4.ip_forward=1
    (cd "$state" && certificates) >"$state/certificates.log" 2>&1
    local admin
    admin=$(openssl rand -hex 16)
    echo "$admin,admin,admin,system:masters" >"$state/tokens.csv"
    for number in $(seq "$nodes"); do
        openssl rand -hex 16 >"$state/token$number"
        echo "$(cat "$state/token$number"),system:node:node$number,node$number,system:nodes" >>"$state/tokens.csv"
    done
    credentials "$state/admin.conf" "$admin"
    mkdir -p "$state/names"
    control_begin
    wait_for 120 "the API server is ready" kubectl get --raw /readyz
    for number in $(seq "$nodes"); do
        node_network "$number"
        node_begin "$number"
    done
    for number in $(seq "$nodes"); do
        wait_for 180 "node$number is ready" \
            kubectl wait --for=condition=Ready "node/node$number" --timeout=1s
    done
}

control_begin() {
    local control=(nsenter --net=/run/netns/plimsoll-control)
    local client=--kubeconfig=$state/admin.conf
    begin etcd "${control[@]}" "$tools/usr/bin/etcd" --data-dir "$state/etcd" \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --unsafe-no-fsync
    begin apiserver "${control[@]}" "$kubernetes" kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
        --advertise-address="$control_address" --service-cluster-ip-range="$service_range" \
        --tls-cert-file="$state/api.pem" --tls-private-key-file="$state/api.key" --cert-dir="$state/api" \
        --token-auth-file="$state/tokens.csv" --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction --endpoint-reconciler-type=none \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$state/accounts.key" \
        --service-account-signing-key-file="$state/accounts.key" \
        --kubelet-preferred-address-types=InternalIP
    wait_for 120 "the API server listens" kubectl get --raw /livez
    begin controllers "${control[@]}" "$kubernetes" kube-controller-manager "$client" --leader-elect=false \
        --service-account-private-key-file="$state/accounts.key" --root-ca-file="$state/ca.pem"
    begin scheduler "${control[@]}" "$kubernetes" kube-scheduler "$client" --leader-elect=false
    # Names of services. Kubernetes has none by itself; `name_service` adds them.
    begin names "${control[@]}" dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts \
        --pid-file="$state/dnsmasq.pid" --user=root --listen-address="$control_address" --bind-interfaces \
        --local=/cluster.local/ --hostsdir="$state/names"
}

# name_services NAMESPACE: what a cluster's own DNS does by itself.
name_services() {
    kubectl -n "$1" get services -o \
        jsonpath="{range .items[*]}{.spec.clusterIP} {.metadata.name}.$1.svc.cluster.local{'\n'}{end}" \
        >"$state/names.new"
    mv "$state/names.new" "$state/names/$1"
}

node_network() {
    local number=$1 other address
    address=$(node_address "$number")
    ip netns add "plimsoll-node$number"
    ip link add "node$number" netns plimsoll-control type veth peer name eth0 netns "plimsoll-node$number"
    in_control ip link set "node$number" master bridge0 up
    in_node "$number" ip link set lo up
    in_node "$number" ip address add "$address/24" dev eth0
    in_node "$number" ip link set eth0 up
    in_node "$number" ip route add default via "$control_address"
    in_node "$number" sysctl -qw net.ipv4.ip_forward=1
    # Pods of a node reach those of another without a network plugin of several machines.
    in_control ip route add "198.19.$number.0/24" via "$address"
    for other in $(seq 9); do
        [ "$other" = "$number" ] ||
            in_node "$number" ip route add "198.19.$other.0/24" via "$(node_address "$other")"
    done
}

# The control groups of a node, in each hierarchy of version 1.
node_groups() {
    local hierarchy file
    for hierarchy in /sys/fs/cgroup/*/; do
        [ "$hierarchy" = /sys/fs/cgroup/unified/ ] || mkdir -p "$hierarchy/plimsoll-node$1"
    done
    for file in cpuset.cpus cpuset.mems; do
        cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/plimsoll-node$1/$file"
    done
}

node_begin() {
    local number=$1 folder=$state/node$1
    mkdir -p "$folder"/{network,kubelet,containerd,logs,volume}
    node_groups "$number"
    credentials "$folder/kubelet.conf" "$(cat "$state/token$number")"
    cat >"$folder/network/10-pods.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$folder/addresses",
            "ranges": [[{"subnet": "198.19.$number.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
    cat >"$folder/containerd.toml" <<END
version = 2
root = "$folder/containerd/root"
state = "$folder/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "$folder/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$folder/network"
END
    cat >"$folder/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /plimsoll-node$number
clusterDNS: ["$control_address"]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$folder/containerd.sock
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
failSwapOn: false
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
podLogsDir: $folder/logs
resolvConf: ""
END
    # The first process of the node's namespace. Mounts and files of the machine's /run and /var stay
    # as they are: a node that loses its power cannot tidy up.
    cat >"$folder/init" <<END
#!/bin/bash
for place in /run/netns /run/containerd /var/lib/cni /var/lib/kubelet /var/log/containers; do
    mkdir -p \$place && mount -t tmpfs tmpfs \$place
done
export PATH=$tools/usr/bin:/usr/sbin:/sbin:\$PATH
containerd -c $folder/containerd.toml >$folder/containerd.log 2>&1 &
control() { ctr -a $folder/containerd.sock -n k8s.io "\$@"; }
until control version; do sleep 0.2; done
for archive in $images/*.tar; do control images import \$archive; done
while read -r from to; do control images tag \$from \$to; done <$images/names
$kubernetes kube-proxy --kubeconfig=$state/admin.conf --hostname-override=node$number --proxy-mode=iptables \
    --cluster-cidr=198.19.0.0/16 --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0s \
    --conntrack-tcp-timeout-close-wait=0s >$folder/proxy.log 2>&1 &
# Not by exec: this shell also waits for processes that lost their parents.
$kubernetes kubelet --config=$folder/kubelet.yaml --kubeconfig=$folder/kubelet.conf \
    --hostname-override=node$number --node-ip=$(node_address "$number") --root-dir=$folder/kubelet \
    --cert-dir=$folder/kubelet/pki >$folder/kubelet.log 2>&1
exit 1
END
    begin "node$number" nsenter --net="/run/netns/plimsoll-node$number" \
        unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash "$folder/init"
}

# Cuts the power of a node: all its processes are gone at once, and nothing says goodbye.
node_power_off() { kill -9 "$(cat "$state/node$1.pid")"; }

# The processes of the machine that run PROGRAM in a pod of a node.
node_processes() { # NODE PROGRAM
    local pid
    find "/sys/fs/cgroup/memory/plimsoll-node$1" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un |
        while read -r pid; do
            [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] && echo "$pid"
        done || true
}

# Ends everything, and puts back what was changed. For what is not there it does nothing.
cluster_down() {
    local file name place
    for file in "$state"/node*.pid; do
        [ -e "$file" ] || continue
        name=$(basename "$file" .pid)
        grep -qF "$state" "/proc/$(cat "$file")/cmdline" 2>/dev/null && node_power_off "${name#node}"
        rm -f "$file"
    done
    for name in forward names scheduler controllers apiserver etcd; do end "$name"; done
    for place in $(ip netns list | awk '$1 ~ /^plimsoll-(control|node[0-9]+)$/ { print $1 }'); do
        ip netns delete "$place"
    done
    awk -v state="$state/" 'index($2, state) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r -n 1 umount -l
    # A process that was killed leaves its group a moment later.
    for _ in $(seq 50); do
        find /sys/fs/cgroup -mindepth 2 -depth -type d -path '*/plimsoll-node*' -exec rmdir {} + 2>/dev/null || true
        [ -n "$(find /sys/fs/cgroup -mindepth 2 -maxdepth 2 -name 'plimsoll-node*')" ] || break
        sleep 0.2
    done
    [ ! -s "$state/sysctls" ] || sysctl -qe -p "$state/sysctls"
    rm -rf --one-file-system "$state"
}
