import { expect, onTestFinished, test, vi } from "vitest";
import { waitFor } from "../../../support/wait-for.ts";
import { countHeld, makeMerchant, makePayment, startApi } from "../start-api.ts";

const api = await startApi();
const shop = await makeMerchant(api);

test("a long poll returns a change of the time in which the process could not read the database", async () => {
  const id = await makePayment(api, shop);
  const asked = api.get(`/v1/payments/${id}/status?maxPollMs=20000`, shop.headers);
  await waitFor(async () => (await countHeld(api)) === 1, { within: 20_000 });
  // Without an event and a message: the events of that time are not read.
  await api.db.updateTable("payment").set({ state: "processing", state_version: 1 }).where("id", "=", id).execute();
  const present = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => present() + 60_000);
  onTestFinished(() => clock.mockRestore());
  const began = present();
  expect((await asked).body["status"]).toBe("processing");
  expect(present() - began, "a poll that nothing wakes returns after 20 s").toBeLessThan(15_000);
});
