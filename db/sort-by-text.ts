/**
 * Returns rows in the order of a text of each, which is the same in every process: statements that write their rows in this
 * order cannot deadlock with each other. Rows with equal texts keep their order.
 */
export function sortByText<R>(rows: readonly R[], textOf: (row: R) => string): R[] {
  const texts = rows.map((row) => ({ row, text: textOf(row) }));
  return texts.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0)).map(({ row }) => row);
}
