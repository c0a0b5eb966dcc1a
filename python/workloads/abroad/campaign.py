"""Campaign of measurements on one GPU: every model timed, recorded, and timed again in another process.

    python -m abroad.campaign --out $OUT [--seconds 540] [NAMES..]

For each model, in this order: a process that times four windows of plain steps, reads `max_memory_allocated`, and then records the
step; a second process that only times it. Models with attention do the first in bf16 autocast too. Results go into tars of at most
15 MiB under --out, a member for each model as soon as it is complete: an interrupted campaign keeps all finished measurements.
While a process is timed, the next one has imported PyTorch and waits.
"""
import argparse
import gzip
import io
import os
import queue
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

# Most valuable first: skewed and sparse, then attention in two precisions, then all others.
ORDER = """
dlrm_zipf105 din_padded sage_hubs sasrec_padded two_tower_padded dlrm_zipf12 qr_dlrm_sparse_adam dlrm_adagrad_sparse lightgcn_bpr hstu_like
encoder_classifier gpt_dropout llama_rope vit_layer_scale bert_masked t5_relative cross_attention_patches window_attention perceiver conformer
wide_resnet_amp segmentation_amp flow_unet dcgan bilstm_tagger gat_citations tabular_mlp soft_actor_critic gpt_accumulate afm_zipf
gru4rec_padded wave_separator convnext_ema video_bf16 mixture_of_experts skipgram_sparse mixer_contrastive
""".split()
TAR_LIMIT, ALL_LIMIT = 15 * 2**20, 61 * 2**20
IMPORT_LIMIT, FIRST_LIMIT, SECOND_LIMIT = 150.0, 50.0, 25.0  # seconds


class Worker:
    """Process of one job, with its output lines and a deadline for each."""

    def __init__(self, job, folder):
        self.job, self.said = job, queue.Queue()
        name, dtype, role = job
        command = [sys.executable, "-u", "-m", "abroad.worker", name, dtype, role, str(folder)]
        self.log = open(folder / f"{name}.{dtype}.{role}.log", "w")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.said.put(line.strip())
        self.said.put(None)

    def hears(self, word, deadline):
        """Whether the process prints `word` before the deadline; None waits for its end."""
        while True:
            try:
                line = self.said.get(timeout=max(0.01, deadline - time.time()))
            except queue.Empty:
                return False
            if line == word:
                return True
            if line is None:
                return False

    def go(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def end(self):
        self.process.kill()
        self.process.wait()


class Tars:
    """Tar files that grow by one gzip member at a time; a file that ends between two members is readable."""

    def __init__(self, out):
        self.out, self.number = out, 1

    def add(self, folder, paths):
        held = io.BytesIO()
        with gzip.GzipFile(fileobj=held, mode="wb", compresslevel=4, mtime=0) as packed:
            plain = io.BytesIO()
            with tarfile.open(fileobj=plain, mode="w") as tar:
                for path in paths:
                    if path.exists():
                        tar.add(path, arcname=str(path.relative_to(folder)))
                end = tar.offset
            packed.write(plain.getvalue()[:end])  # without the blocks that end an archive
        data = held.getvalue()
        if sum(each.stat().st_size for each in self.out.glob("*.tar.gz")) + len(data) > ALL_LIMIT:
            print(f"left out, the tars are full: {', '.join(str(path.relative_to(folder)) for path in paths)}", flush=True)
            return
        path = self.out / f"campaign-{self.number}.tar.gz"
        if path.exists() and path.stat().st_size + len(data) > TAR_LIMIT:
            self.number += 1
            path = self.out / f"campaign-{self.number}.tar.gz"
        with open(path, "ab") as there:
            there.write(data)


def jobs_of(names, models, once):
    for name in names:
        dtypes = models[name].dtypes
        yield name, dtypes[0], "first"
        if once:
            continue
        for dtype in dtypes[1:]:
            yield name, dtype, "first"
        yield name, dtypes[0], "second"


def registry():
    """Registry of models, of which only names and precisions are read, so that this process does not use a GPU."""
    from abroad import MODELS

    return MODELS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=540.0, help="no model is begun that would not end by then")
    parser.add_argument("--skip", default="", help="names that are left out, joined by commas")
    parser.add_argument("--once", action="store_true", help="one process a model: no second one, no second precision")
    parser.add_argument("names", nargs="*", default=ORDER)
    asked = parser.parse_args()
    began = time.time()
    folder = Path("/tmp/campaign") if "CAMPAIGN_FOLDER" not in os.environ else Path(os.environ["CAMPAIGN_FOLDER"])
    folder.mkdir(parents=True, exist_ok=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    tars = Tars(asked.out)
    probe = folder / "host.toml"
    print(subprocess.run([sys.executable, "-m", "steptime.probe", "-o", str(probe)], capture_output=True, text=True).stdout, flush=True)
    tars.add(folder, [probe])
    print(f"{time.time() - began:6.1f} s: host probed", flush=True)

    names = [name for name in asked.names if name not in asked.skip.split(",")]
    jobs = list(jobs_of(names, registry(), asked.once))
    failed = set()
    worker, done = None, []
    for at, job in enumerate(jobs):
        name, dtype, role = job
        left = asked.seconds - (time.time() - began)
        if left < (20 if role == "first" else 9):
            break
        if name in failed:
            continue
        if worker is None or worker.job != job:
            if worker is not None:
                worker.end()
            worker = Worker(job, folder)
        here = worker
        ok = here.hears("ready", time.time() + min(IMPORT_LIMIT, left))
        start = time.time()
        deadline = min(start + (FIRST_LIMIT if role == "first" else SECOND_LIMIT), began + asked.seconds)
        here.go()
        worker = Worker(jobs[at + 1], folder) if at + 1 < len(jobs) else None
        for each in done:  # packed while the model is built and warmed up
            tars.add(folder, each)
        done = []
        ok = ok and here.hears("warm", deadline)
        if worker is not None and not worker.hears("ready", time.time() + IMPORT_LIMIT):
            worker.end()
            worker = None
        elif worker is not None:
            worker.said.put("ready")
        here.go()
        if ok:
            try:
                ok = here.process.wait(timeout=max(0.1, deadline - time.time())) == 0
            except subprocess.TimeoutExpired:
                ok = False
        here.end()
        here.log.close()
        log = folder / f"{name}.{dtype}.{role}.log"
        key = name if dtype == registry()[name].dtypes[0] else f"{name}.{dtype}"
        if ok:
            done.append([folder / "rec" / key, folder / "truth" / f"{key}.json"] if role == "first" else [folder / "truth" / f"{key}.json"])
        else:
            failed |= {name} if (role, dtype) == ("first", registry()[name].dtypes[0]) else set()
            print(log.read_text()[-600:], flush=True)
        packed = sum(each.stat().st_size for each in asked.out.glob("*.tar.gz"))
        print(f"{time.time() - began:6.1f} s: {key} {role} {'ok' if ok else 'FAILED'} in {time.time() - start:.1f} s; {packed / 1e6:.1f} MB", flush=True)
    for each in done:
        tars.add(folder, each)
    if worker is not None:
        worker.end()
    print(f"{time.time() - began:6.1f} s: end", flush=True)


if __name__ == "__main__":
    main()
