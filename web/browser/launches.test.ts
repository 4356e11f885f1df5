// Tests that launches of CUDA are drawn among the calls of their thread, under the names of their functions.

import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { fixture } from "./fixture.ts";
import { loaded, state, temporaryFolder, type Viewer, writeTrace } from "./product.ts";

const LAUNCHES = `manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
process id=1 pid=7 executable=/usr/bin/python
thread process=1 thread=7 name=main
device id=1 process=1 api=cuda name="Some GPU"
queue id=1 device=1
kernel id=1 process=1 name=gemm
submission id=1 process=1 queue=1 kind=kernel thread=7 start_ns=100us duration_ns=40us function=cudaLaunchKernel
submission id=2 process=1 queue=1 kind=transfer thread=7 start_ns=200us duration_ns=60us function=cudaMemcpyAsync
host_call process=1 thread=7 call=other-call start_ns=90us duration_ns=60us function=cublasGemmEx
host_call process=1 thread=7 call=wait-queue-idle start_ns=300us duration_ns=100us function=cudaStreamSynchronize
dispatch submission=1 position=0 queue=1 kernel=1 start_ns=150us duration_ns=50us
transfer submission=2 position=0 queue=1 kind=host-to-device bytes=64 start_ns=280us duration_ns=100us
`;

const folder = temporaryFolder();
const pages = fixture();
let viewer: Viewer;

beforeAll(async () => {
  viewer = await pages.serve(writeTrace(folder, "launches", LAUNCHES));
});

const results = (page: Page) => page.getByRole("region", { name: "Search results" });

test("the search finds a launch by its function, and its details have the work that it launched", async () => {
  const page = await pages.open(viewer.url);
  await loaded(page);
  const box = page.getByRole("searchbox", { name: /regular expression/ });
  await box.fill("memcpyasync");
  const kinds = () => results(page).locator("[data-kind]").evaluateAll((heads) => heads.map((head) => `${(head as HTMLElement).dataset.kind} ${(head as HTMLElement).dataset.count}`));
  await expect.poll(kinds).toEqual(["Calls 1"]);
  await box.press("Enter");
  await expect.poll(async () => (await state(page)).event).toBe("submissions.1");
  const details = page.locator(".details-panel");
  await expect.poll(() => details.innerText()).toContain("cudaMemcpyAsync");
  await expect.poll(() => details.locator("[data-relation=runs]").innerText()).toContain("host-to-device");
  // From the work the way leads back to its launch.
  await details.locator("[data-relation=runs] button").click();
  await expect.poll(async () => (await state(page)).event).toBe("transfers.0");
  await expect.poll(() => details.locator("[data-relation=submitted-by]").innerText()).toContain("cudaMemcpyAsync");
});
