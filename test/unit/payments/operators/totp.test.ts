import { expect, test } from "vitest";
import { computeTotp, findTotpStep, makeTotpSecret, toTotpUri, totpStep } from "../../../../payments/operators/totp.ts";

/** The secret of RFC 6238, appendix B, "12345678901234567890", in base32. */
const secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

// The last six of the eight digits that the appendix lists for SHA-1.
test.each([
  [59, "287082"],
  [1_111_111_109, "081804"],
  [1_111_111_111, "050471"],
  [1_234_567_890, "005924"],
  [2_000_000_000, "279037"],
  [20_000_000_000, "353130"],
])("the code at second %i is that of RFC 6238", (second, code) => {
  expect(computeTotp(secret, totpStep(new Date(second * 1_000)))).toBe(code);
});

test("a code is accepted one step before and after its own, and no further", () => {
  const at = new Date("2026-03-01T12:00:10Z");
  const step = totpStep(at);
  for (const [difference, found] of [
    [-2, undefined],
    [-1, step - 1],
    [0, step],
    [1, step + 1],
    [2, undefined],
  ] as const)
    expect(findTotpStep(secret, computeTotp(secret, step + difference), at)).toBe(found);
  for (const wrong of ["", "12345", "1234567", "abcdef"]) expect(findTotpStep(secret, wrong, at)).toBeUndefined();
});

test("a new secret has 160 bits in base32, and its URI names the operator", () => {
  const made = makeTotpSecret();
  expect(made).toMatch(/^[A-Z2-7]{32}$/);
  expect(makeTotpSecret()).not.toBe(made);
  expect(toTotpUri("anna@example.com", made)).toBe(
    `otpauth://totp/Payments:anna%40example.com?secret=${made}&issuer=Payments`,
  );
});
