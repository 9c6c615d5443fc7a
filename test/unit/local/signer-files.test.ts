import { expect, test } from "vitest";
import { describeLimits } from "../../../local/signer-files.ts";
import { parseLimits } from "../../../signer/limits.ts";

test("on the local stack a changed destination is paid at once: neither the account nor the signer waits", () => {
  const parsed = parseLimits(JSON.stringify(describeLimits({ chains: [] })));
  expect(parsed).toMatchObject({ limits: { paused: false, destinationWaitingHours: 0 } });
});
