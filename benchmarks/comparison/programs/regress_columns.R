# Tobit regression of each outcome by itself: survival's survreg, AER's tobit, VGAM's tobit family.

here <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
source(file.path(dirname(gsub("~+~", " ", here, fixed = TRUE)), "harness.R"))
suppressPackageStartupMessages(library(survival))

by_survreg <- function(y, X, limit) {
  seen <- !is.na(y)
  value <- ifelse(seen, y, limit)
  fit <- survreg(Surv(value, seen, type = "left") ~ X, dist = "gaussian")
  list(coef(fit), fit$scale, sqrt(diag(vcov(fit)))[seq_along(coef(fit))])
}

by_tobit <- function(y, X, limit) {
  value <- ifelse(is.na(y), limit, y)
  fit <- AER::tobit(value ~ X, left = limit)
  list(coef(fit), fit$scale, sqrt(diag(vcov(fit)))[seq_along(coef(fit))])
}

by_vglm <- function(y, X, limit) {
  value <- ifelse(is.na(y), limit, y)
  fit <- VGAM::vglm(value ~ X, VGAM::tobit(Lower = limit))
  all <- VGAM::coef(fit)
  error <- sqrt(diag(VGAM::vcov(fit)))
  list(all[-2], exp(all[[2]]), error[-2])
}

estimate <- function(table, options) {
  ways <- list(survreg = by_survreg, tobit = by_tobit, vglm = by_vglm)
  X <- table$read("regressors")
  Y <- table$read("values")
  fits <- lapply(1:table$d, function(j) ways[[options$method]](Y[, j], X, table$task$limits[j]))
  coefficients <- unlist(lapply(fits, `[[`, 1))
  scale <- sapply(fits, `[[`, 2)
  S <- matrix(NA_real_, table$d, table$d)
  S[cbind(1:table$d, 1:table$d)] <- scale^2
  error <- unlist(lapply(fits, `[[`, 3))
  list(
    mean = coefficients, covariance = S,
    mean_interval = wald(coefficients, error, table$task$level)
  )
}

method <- fromJSON(commandArgs(trailingOnly = TRUE)[3])$method
answer_all(estimate, c(survreg = "survival", tobit = "AER", vglm = "VGAM")[[method]])
