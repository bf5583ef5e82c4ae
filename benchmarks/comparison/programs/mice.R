# mice: multiple imputation by chained equations, which takes what is hidden as missing at random.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(mice))

estimate <- function(table, options) {
  values <- setNames(as.data.frame(table$read("values")), paste0("x", 1:table$d))
  imputed <- mice(values, m = 5, method = "norm", seed = table$seed, printFlag = FALSE)
  completed <- complete(imputed, "all")
  means <- sapply(completed, colMeans)
  covariances <- lapply(completed, cov)
  errors <- sapply(covariances, function(S) diag(S) / table$n)
  list(
    mean = rowMeans(means),
    covariance = Reduce(`+`, covariances) / length(covariances),
    mean_interval = rubin(means, errors, table)
  )
}

# Rubin's rules, for each column.
rubin <- function(means, errors, table) {
  ends <- sapply(1:table$d, function(j) {
    pooled <- pool.scalar(means[j, ], errors[j, ], n = table$n)
    reach <- qt((1 + table$task$level) / 2, pooled$df) * sqrt(pooled$t)
    pooled$qbar + c(-reach, reach)
  })
  list(ends[1, ], ends[2, ])
}

answer_all(estimate, "mice")
