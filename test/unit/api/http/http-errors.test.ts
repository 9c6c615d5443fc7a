import { describe, expect, test } from "vitest";
import { statusOf } from "../../../../api/http/http-errors.ts";
import { errorCodes } from "../../../../payments/error-codes.ts";

describe("the table of error codes", () => {
  test("maps every code of the contract to one status and holds no other code", () => {
    expect(Object.keys(statusOf).sort()).toEqual([...errorCodes].sort());
  });

  test("the table of error codes keeps the code and status pairs that the specification names", () => {
    expect(statusOf).toMatchObject({
      invalid_api_key: 401,
      forbidden: 403,
      payment_not_found: 404,
      quote_expired: 409,
      payment_expired: 410,
      internal_error: 500,
    });
  });
});
