import { describe, expect, test } from "vitest";
import { findExcess, type KeyLimits } from "../../../../payments/merchants/key-limits.ts";

const end = new Date("2026-06-01T00:00:00Z");
const before = new Date(end.getTime() - 1);
const after = new Date(end.getTime() + 1);
const own: KeyLimits = {
  scopes: ["keys", "payments:read"],
  onlyMerchants: ["m1", "m2"],
  allowedCidrs: ["10.0.0.0/8", "2001:db8::/32"],
  expiresAt: end,
};

describe("a key with the same or narrower limits", () => {
  test.each<[string, Partial<KeyLimits>]>([
    ["of the same limits", {}],
    ["with one scope", { scopes: ["payments:read"] }],
    ["for one merchant", { onlyMerchants: ["m2"] }],
    ["from a narrower range", { allowedCidrs: ["10.1.0.0/16", "2001:db8::7/128"] }],
    ["with an earlier end", { expiresAt: before }],
  ])("exceeds nothing: %s", (_what, limits) => {
    expect(findExcess(own, { ...own, ...limits })).toBeUndefined();
  });
});

describe("a key exceeds another one", () => {
  test.each<[string, Partial<KeyLimits>, string]>([
    ["by a scope", { scopes: ["payments:read", "refunds"] }, "scopes: your key lacks the scope refunds"],
    ["by a merchant", { onlyMerchants: ["m1", "m3"] }, "merchantIds"],
    ["by having every merchant", { onlyMerchants: null }, "merchantIds"],
    ["by a wider range", { allowedCidrs: ["10.0.0.0/7"] }, "allowedCidrs"],
    ["by a range of the other family", { allowedCidrs: ["10.0.0.0/8", "::/0"] }, "allowedCidrs"],
    ["by any address", { allowedCidrs: null }, "allowedCidrs"],
    ["by a later end", { expiresAt: after }, "expiresAt"],
    ["by having no end", { expiresAt: null }, "expiresAt"],
  ])("%s", (_what, limits, member) => {
    expect(findExcess(own, { ...own, ...limits })).toContain(member);
  });
});

test("a key without limits is exceeded only by scopes", () => {
  const open: KeyLimits = { scopes: ["keys"], onlyMerchants: null, allowedCidrs: null, expiresAt: null };
  expect(findExcess(open, { ...own, scopes: ["keys"] })).toBeUndefined();
  expect(findExcess(open, open)).toBeUndefined();
  expect(findExcess(open, own)).toContain("scopes");
});
