import type {
  GetStatementQuery,
  GetStatementResponse,
  ListBalancesQuery,
  ListBalancesResponse,
  MerchantBalance,
  StatementLine,
} from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { path } from "../http/transport.ts";
import type { MerchantCalls, MerchantOptions } from "./merchant-calls.ts";

/** Balances and statements: of the client's merchant, or of the whole account when the client and the call name none. */
export function createReports({ get, readCsv, merchantId: ownMerchant }: MerchantCalls) {
  const pathOf = (what: "balances" | "statement", merchantId = ownMerchant) =>
    merchantId === undefined ? `/v1/${what}` : `${path`/v1/merchants/${merchantId}`}/${what}`;
  return {
    balances: {
      /** Lists what merchants are owed and have not been paid yet, by asset. */
      list: (query: ListBalancesQuery = {}, options?: MerchantOptions): Pages<MerchantBalance, ListBalancesResponse> =>
        listPages(
          (cursor) => get(pathOf("balances", options?.merchantId), { ...query, cursor }, options),
          ({ data }) => data,
          query.cursor,
        ),
    },
    statements: {
      /** Lists payments, fees, payouts and refunds from one UTC day to another, both inclusive (`2026-03-01`). */
      list: (query: GetStatementQuery, options?: MerchantOptions): Pages<StatementLine, GetStatementResponse> =>
        listPages(
          (cursor) => get(pathOf("statement", options?.merchantId), { ...query, cursor }, options),
          ({ data }) => data,
          query.cursor,
        ),
      /** Returns the whole statement as CSV, in a stream. */
      csv: ({ from, until }: Pick<GetStatementQuery, "from" | "until">, options?: MerchantOptions) =>
        readCsv(`${pathOf("statement", options?.merchantId)}.csv`, { from, until }, options),
    },
  };
}
