# The first process of the virtual machine (machine.py). What the test reads is said in lines that begin with a name.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
echo "machine: $(uname -s -m)"

cd @BUILD@
# Not all: an emulated processor takes longer for some than they wait.
tests/test_agent --report_level=short --log_level=error --color_output=no --run_test=agent_filter,agent_parts,agent_commands,agent_transports
echo "agent: $?"

export SANDBOXD_TOKEN=token SANDBOXD_RUNTIMES=box=dir:/box SANDBOXD_STATE_DIR=/var/state SANDBOXD_PREWARM=0
./sandboxd --backend oci --listen 127.0.0.1:8080 >/log 2>&1 &
service=$!
ask() { curl -s --max-time 600 -H "X-Sandbox-Token: $1" -H "Content-Type: application/json" -d "$3" "http://127.0.0.1:8080$2"; }
until curl -sf --max-time 60 -o /dev/null http://127.0.0.1:8080/healthz; do
    if ! kill -0 $service; then break; fi
    sleep 0.5
done
opened=$(ask token /sessions '{"session_id": "one"}')
key=$(echo "$opened" | sed 's/.*"token": *"\([^"]*\)".*/\1/')
command='uname -m; id -u; grep ^Seccomp: /proc/self/status; mount -t tmpfs x /tmp 2>/dev/null || echo no mounts; exit 7'
echo "opened: $opened"
echo "command: $(ask "$key" /sessions/one/exec "{\"command\": \"$command\"}")"
echo "write: $(ask "$key" /sessions/one/write '{"path": "/workspace/f", "content_b64": "d3JpdHRlbg=="}')"
echo "read: $(ask "$key" /sessions/one/read '{"path": "/workspace/f"}')"
kill $service
wait $service
status=$?
cat /log
echo "service: $status"
sync
poweroff -f
