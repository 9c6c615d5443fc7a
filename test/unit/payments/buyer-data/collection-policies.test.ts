import { expect, test } from "vitest";
import { needsData } from "../../../../payments/buyer-data/collection-policies.ts";

test("a policy applies from its minimum on, however a payment spells the unit", () => {
  const asset = "eip155:8453/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
  const spelled = "eip155:8453/erc20:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
  const policy = (unit: string) => ({ asset: null, unit, minimum: 1_000n });
  for (const [own, paid] of [
    [asset, spelled],
    [spelled, asset],
  ] as const) {
    const policies = [policy(`caip19/${own}`)];
    expect(needsData(policies, { asset, unit: `caip19/${paid}`, value: 1_000n })).toBe(true);
    expect(needsData(policies, { asset, unit: `caip19/${paid}`, value: 999n })).toBe(false);
  }
  expect(needsData([policy("iso4217/USD")], { asset, unit: "iso4217/EUR", value: 1_000n })).toBe(false);
});
