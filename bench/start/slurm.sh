#!/usr/bin/env bash
# A private Slurm for one benchmark: munge, a controller and one node, in a folder of its own.
#
#   slurm.sh up FOLDER CACHE   starts it; the last line printed says, as JSON, how to reach it
#   slurm.sh down FOLDER       ends it
#
# Slurm's programs are taken from the system, or else unpacked from Debian's packages into CACHE;
# nothing is installed and no service of the system is touched.
set -euo pipefail
folder=$2

down() {
  for name in slurmd slurmctld munged; do
    [ -f "$folder/$name.pid" ] || continue
    pid=$(cat "$folder/$name.pid")
    [ "$(cat "/proc/$pid/comm" 2>/dev/null | cut -c1-6)" = "${name:0:6}" ] || continue
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
    kill -KILL "$pid" 2>/dev/null || true
  done
}
if [ "$1" = down ]; then down; exit 0; fi
cache=$3

die() { echo "$*" >&2; exit 1; }

# root is where the programs lie: the system's own tree, or the unpacked one.
if command -v slurmctld slurmd sbatch munged >/dev/null; then
  root=
else
  root=$cache
  if [ ! -x "$root/usr/sbin/slurmctld-wlm" ]; then
    command -v apt-get >/dev/null || die "Slurm is not installed, and no apt-get to fetch it with"
    fresh=$cache.$$
    mkdir -p "$fresh/packages"
    (cd "$fresh/packages" && apt-get download -q liblua5.1-0 libmunge2 munge slurm-client \
      slurm-wlm-basic-plugins slurmctld slurmd) >"$fresh/log" 2>&1 ||
      { tail -3 "$fresh/log" >&2; rm -rf "$fresh"; die "Slurm's packages cannot be downloaded"; }
    for package in "$fresh"/packages/*.deb; do dpkg -x "$package" "$fresh"; done
    rm -rf "$fresh/packages" "$cache"
    mv "$fresh" "$cache"
  fi
fi
program() { # program NAME: Debian's alternatives are links that unpacking does not make
  for path in "$root"/usr/{sbin,bin}/"$1"{,-wlm}; do
    [ -x "$path" ] && { echo "$path"; return; }
  done
  die "no $1 under ${root:-/}"
}
lib=$root/usr/lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH="$lib:$lib/slurm-wlm${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
user=$(id -un)
mkdir -p "$folder/state" "$folder/spool"
chmod 700 "$folder"
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
cpus=$(nproc)
memory=$(awk '/MemTotal/ { print int($2 / 1024 * 0.9) }' /proc/meminfo)
cat >"$folder/slurm.conf" <<CONF
ClusterName=bench
SlurmctldHost=localhost
SlurmctldPort=$(port)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
PluginDir=$lib/slurm-wlm
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0
NodeName=localhost Port=$(port) CPUs=$cpus RealMemory=$memory State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$folder/slurm.conf

"$(program munged)" --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" \
  --force >&2 || die "munged does not start"
"$(program slurmctld)" -i >&2 || die "slurmctld does not start"
"$(program slurmd)" -N localhost -d "$(program slurmstepd)" >&2 ||
  die "slurmd does not start"
sbatch=$(program sbatch)
for _ in $(seq 300); do
  state=$("$(program sinfo)" --noheader --format=%T 2>/dev/null || true)
  [ "$state" = idle ] && break
  sleep 0.1
done
if [ "$state" != idle ]; then
  tail -3 "$folder"/slurm*.log >&2
  down
  die "the node is '${state:-unknown}', not idle"
fi
printf '{"sbatch":"%s","conf":"%s","libraries":"%s","version":"%s","settings":"%s"}\n' "$sbatch" \
  "$SLURM_CONF" "$LD_LIBRARY_PATH" "$("$sbatch" --version | awk '{print $2}')" \
  "batch_sched_delay=0, else as it comes"
